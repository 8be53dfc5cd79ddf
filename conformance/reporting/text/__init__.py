"""What people read in terminals, and Markdown."""
