"""The pipeline's engine: a lazily started Spark session, the runner that schedules plain task functions, a data source."""
