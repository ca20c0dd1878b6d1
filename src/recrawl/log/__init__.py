"""The log: formats of crawlers, rows, histories of pages, in bounded memory."""
