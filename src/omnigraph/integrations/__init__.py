"""Other libraries and formats: LangChain, LlamaIndex, NetworkX, Neo4j. Nothing of the core imports this package."""
