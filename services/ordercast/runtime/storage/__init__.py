"""What is durable: the database, its one writer, and what is done about damage."""
