"""Result lines: kept, merged, and read for reports."""
