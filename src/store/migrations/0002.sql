-- Rows of usage are written with each call and read now and then. Each index cost a call
-- more than the row itself; rows lie in the order of time as they are.
DROP INDEX usage_at;
DROP INDEX usage_key;
DROP INDEX usage_tool;
