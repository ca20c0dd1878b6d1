"""How crawlers store what they have seen: one small file a format."""

from paperlib.crawl_log.formats.tables import files_of, insert

__all__ = ["files_of", "insert"]
