"""From OTLP to rows: one for each span, delivery, point of a metric, and event, with the columns of the schema."""
