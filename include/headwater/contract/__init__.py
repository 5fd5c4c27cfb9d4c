"""What the floors say to each other: command lines, reports and what is printed of them."""
