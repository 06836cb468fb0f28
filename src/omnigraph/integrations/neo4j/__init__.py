"""Exports of Neo4j as a graph: `import_neo4j`, and what it proposes."""
