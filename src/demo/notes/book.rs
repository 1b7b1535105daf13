//! The notebook: what a note is, how notes are added, found and deleted. Pure; the caller brings
//! the time and the lock.

use std::collections::BTreeMap;

/// Enough for a demo, and a bound on what a runaway client can make us hold.
const MAX_NOTES: usize = 1000;
const MAX_TITLE_CHARS: usize = 200;
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_TAGS: usize = 20;
const DEFAULT_LIMIT: usize = 20;

/// One note, as it is stored and as tools return it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Note {
    /// Names the note in later calls; never used twice.
    pub(crate) id: u64,
    /// What the note is about.
    pub(crate) title: String,
    /// The note itself.
    pub(crate) text: String,
    /// Words that group notes, in lower case.
    pub(crate) tags: Vec<String>,
    /// When it was added, as RFC 3339 in UTC.
    pub(crate) created: String,
}

/// Some notes, newest first.
#[derive(Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct NoteList {
    /// How many notes fit the question, also when fewer are returned.
    pub(crate) total: usize,
    /// The notes, newest first.
    pub(crate) notes: Vec<Note>,
}

/// All notes. Ids grow, so the order of ids is the order of time.
#[derive(Debug, Default)]
pub(crate) struct Book {
    notes: BTreeMap<u64, Note>,
    last_id: u64,
}

impl Book {
    /// Adds a note and returns it. Title and tags are trimmed, tags lower-cased and made unique.
    ///
    /// # Errors
    /// A sentence for the model: what was wrong and what to send instead.
    pub(crate) fn add(
        &mut self,
        title: &str,
        text: String,
        tags: &[String],
        now: jiff::Timestamp,
    ) -> Result<Note, String> {
        let title = title.trim();
        if title.is_empty() {
            return Err(
                "The title is empty. Send one line that says what the note is about.".to_owned()
            );
        }
        let chars = title.chars().count();
        if chars > MAX_TITLE_CHARS {
            return Err(format!(
                "The title has {chars} characters, at most {MAX_TITLE_CHARS} fit. Move the rest \
                 into `text`."
            ));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "The text has {} bytes, at most {MAX_TEXT_BYTES} fit. Split it into several notes.",
                text.len()
            ));
        }
        let tags = clean_tags(tags)?;
        if self.notes.len() >= MAX_NOTES {
            return Err(format!(
                "The notebook is full ({MAX_NOTES} notes). Delete some with delete_note first."
            ));
        }
        self.last_id += 1;
        let created = format!("{now:.0}");
        let note = Note { id: self.last_id, title: title.to_owned(), text, tags, created };
        self.notes.insert(note.id, note.clone());
        Ok(note)
    }

    /// Up to `limit` notes (20 when not given), newest first, all of them or those with `tag`.
    pub(crate) fn list(&self, tag: Option<&str>, limit: Option<usize>) -> NoteList {
        let tag = tag.map(|tag| tag.trim().to_lowercase()).filter(|tag| !tag.is_empty());
        self.select(limit, |note| tag.as_ref().is_none_or(|tag| note.tags.contains(tag)))
    }

    /// Up to `limit` notes that contain every word of `query`, newest first.
    ///
    /// # Errors
    /// When the query has no words.
    pub(crate) fn search(&self, query: &str, limit: Option<usize>) -> Result<NoteList, String> {
        let query = query.to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        if words.is_empty() {
            return Err("The query is empty. Send one or more words, or call list_notes to see \
                        every note."
                .to_owned());
        }
        Ok(self.select(limit, |note| {
            let (title, text) = (note.title.to_lowercase(), note.text.to_lowercase());
            words.iter().all(|word| {
                title.contains(word)
                    || text.contains(word)
                    || note.tags.iter().any(|tag| tag.contains(word))
            })
        }))
    }

    /// Takes the note out and returns it.
    ///
    /// # Errors
    /// When there is no note with this id.
    pub(crate) fn delete(&mut self, id: u64) -> Result<Note, String> {
        self.notes
            .remove(&id)
            .ok_or_else(|| format!("There is no note {id}. Call list_notes to see the ids."))
    }

    fn select(&self, limit: Option<usize>, fits: impl Fn(&Note) -> bool) -> NoteList {
        let limit = limit.unwrap_or(DEFAULT_LIMIT).max(1);
        let mut list = NoteList { total: 0, notes: Vec::new() };
        for note in self.notes.values().rev().filter(|note| fits(note)) {
            list.total += 1;
            if list.notes.len() < limit {
                list.notes.push(note.clone());
            }
        }
        list
    }
}

fn clean_tags(tags: &[String]) -> Result<Vec<String>, String> {
    let mut clean: Vec<String> = Vec::new();
    for tag in tags {
        let tag = tag.trim().to_lowercase();
        if !tag.is_empty() && !clean.contains(&tag) {
            clean.push(tag);
        }
    }
    if clean.len() > MAX_TAGS {
        return Err(format!("There are {} tags, at most {MAX_TAGS} fit.", clean.len()));
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::{Book, MAX_NOTES};

    fn book() -> Book {
        let mut book = Book::default();
        for (title, text, tags) in [
            ("Milk", "two litres", vec!["Shopping"]),
            ("  Bread ", "rye", vec!["shopping", " SHOPPING ", ""]),
            ("Call Ada", "about the engine", vec!["work"]),
        ] {
            let tags: Vec<String> = tags.into_iter().map(str::to_owned).collect();
            book.add(title, text.to_owned(), &tags, jiff::Timestamp::UNIX_EPOCH).unwrap();
        }
        book
    }

    fn titles(list: &super::NoteList) -> Vec<&str> {
        list.notes.iter().map(|note| note.title.as_str()).collect()
    }

    #[test]
    fn a_note_is_cleaned_and_dated() {
        let list = book().list(None, None);
        assert_eq!(titles(&list), ["Call Ada", "Bread", "Milk"]);
        assert_eq!(list.notes[1].tags, ["shopping"]);
        assert_eq!(list.notes[1].created, "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_list_is_limited_and_says_how_many_there_are() {
        let list = book().list(Some("Shopping"), Some(1));
        assert_eq!((list.total, titles(&list)), (2, vec!["Bread"]));
        assert_eq!(book().list(Some("nope"), None).total, 0);
    }

    #[test]
    fn a_search_needs_every_word_anywhere() {
        let check = |query: &str, expect: &[&str]| {
            assert_eq!(titles(&book().search(query, None).unwrap()), expect, "{query}");
        };
        check("ENGINE ada", &["Call Ada"]);
        check("shop", &["Bread", "Milk"]);
        check("shop litres", &["Milk"]);
        check("ada milk", &[]);
        assert!(book().search("  ", None).unwrap_err().contains("list_notes"));
    }

    #[test]
    fn an_id_is_never_used_twice() {
        let mut book = book();
        assert_eq!(book.delete(3).unwrap().title, "Call Ada");
        assert!(book.delete(3).unwrap_err().contains("no note 3"));
        let note = book.add("x", String::new(), &[], jiff::Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(note.id, 4);
    }

    #[test]
    fn bad_notes_are_refused_with_the_remedy() {
        let mut book = book();
        let mut refused = |title: &str, text: String| {
            book.add(title, text, &[], jiff::Timestamp::UNIX_EPOCH).unwrap_err()
        };
        assert!(refused(" ", String::new()).contains("title is empty"));
        assert!(refused(&"é".repeat(201), String::new()).contains("201 characters"));
        assert!(refused("x", "y".repeat(70_000)).contains("Split it"));
        for _ in book.notes.len()..MAX_NOTES {
            book.add("x", String::new(), &[], jiff::Timestamp::UNIX_EPOCH).unwrap();
        }
        let full = book.add("x", String::new(), &[], jiff::Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(full.contains("full"));
    }
}
