"""What users would write instead: short, as one writes it, with the Spark settings that Headwater sets unless said otherwise."""
