//! Text into the words that are compared: split at case and separators, without the words
//! that stand everywhere, stemmed.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// Characters of one text that are looked at.
const MOST: usize = 4000;

/// Characters of one word; what is longer is data, not language.
const LONGEST: usize = 40;

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// Words that say nothing on a task.
static STOP: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    "a an the and or but if then else of to in on at by for from with without into onto over under \
     about as is are was were be been being am do does did doing have has had having i me my we our \
     you your he him his she her it its they them their this that these those there here what which \
     who whom whose when where why how all any both each few more most other some such no nor not \
     only own same so than too very can could will would shall should may might must just please let \
     lets get got want wants need needs using use used via also help me us"
        .split_whitespace()
        .collect()
});

/// The words of a text, in order, each as its stem.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in split(text) {
        if STOP.contains(word.as_str()) {
            continue;
        }
        found.push(STEMMER.stem(&word).into_owned());
    }
    found
}

/// Lower-case words: runs of letters or digits, `camelCase` and `HTTPServer` apart. In scripts
/// that write without spaces, each pair of neighbours is a word.
fn split(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut letters = text.chars().take(MOST).peekable();
    let mut before: Option<char> = None;
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            end(&mut word, &mut found);
            before = None;
            continue;
        }
        if is_dense(letter) {
            end(&mut word, &mut found);
            match before.filter(|other| is_dense(*other)) {
                Some(other) => found.push([other, letter].iter().collect()),
                None if !letters.peek().is_some_and(|next| is_dense(*next)) => {
                    found.push(letter.to_string());
                }
                None => {}
            }
            before = Some(letter);
            continue;
        }
        let next_is_small = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = before.is_some_and(|other| {
            (other.is_lowercase() && letter.is_uppercase())
                || (other.is_uppercase() && letter.is_uppercase() && next_is_small)
                || (other.is_numeric() != letter.is_numeric())
                || is_dense(other)
        });
        if begins {
            end(&mut word, &mut found);
        }
        word.extend(letter.to_lowercase());
        before = Some(letter);
    }
    end(&mut word, &mut found);
    found
}

fn end(word: &mut String, found: &mut Vec<String>) {
    if !word.is_empty() && word.chars().count() <= LONGEST {
        found.push(std::mem::take(word));
    }
    word.clear();
}

/// Scripts without spaces between words.
fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

#[cfg(test)]
mod tests {
    use super::words;

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(words(text), expect, "{text}");
    }

    #[test]
    fn words_are_split_and_stemmed() {
        check("browser_takeScreenshot", &["browser", "take", "screenshot"]);
        check("HTTPServer2 list-news", &["http", "server", "2", "list", "news"]);
        check("Please create the issues!", &["creat", "issu"]);
        check("搜索关键词", &["搜索", "索关", "关键", "键词"]);
        check("", &[]);
    }

    #[test]
    fn endless_words_are_left_out() {
        check(&"x".repeat(5000), &[]);
    }
}
