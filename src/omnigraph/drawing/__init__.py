"""Pictures of nodes and edges: laid out here, drawn as SVG, HTML or PNG, with nothing fetched from anywhere."""
