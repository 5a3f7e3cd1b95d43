-- How many amounts and days the lines say that items of a model are about, and how many of them the
-- items say, too.
ALTER TABLE activity ADD COLUMN amounts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity ADD COLUMN amounts_kept INTEGER NOT NULL DEFAULT 0;
