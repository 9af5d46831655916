-- Finds the requests of conversations that are deleted.
CREATE INDEX requests_by_message ON requests (conversation, position);
