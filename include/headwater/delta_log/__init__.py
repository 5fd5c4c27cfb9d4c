"""Delta's log as files of JSON: which versions a table has, and what each commit says."""
