"""Turn result lines into terminal text, HTML pages, figures and exports. Nothing here runs trials."""
