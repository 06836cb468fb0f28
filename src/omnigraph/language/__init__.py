"""The two languages: `.pg` schemas and `.gq` queries. Pure: no Lance, no Spark, no Arrow, no I/O."""
