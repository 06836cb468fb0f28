"""Search: matching of texts, bm25 scores, vector distances, and best-first scans."""
