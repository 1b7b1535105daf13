//! Search by words: BM25F over the fields of a tool, within one reach.
//!
//! How rare a word is and how long a field is on average are those of the tools within reach,
//! so what is out of reach changes nothing (P44).

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::{Document, FIELDS, normal};
use crate::words::words;

/// Name, description, names of arguments, their descriptions, server.
const WEIGHTS: [f32; FIELDS] = [4.0, 1.0, 1.0, 0.5, 1.0];

/// How much the length of a field counts.
const LENGTH: [f32; FIELDS] = [0.3, 0.6, 0.6, 0.6, 0.3];

/// How soon a word that stands often stops counting more.
const SATURATION: f32 = 1.2;

/// The tools within one reach, by their words.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) documents: Vec<Arc<Document>>,
    /// Word → (document, weighted frequency).
    postings: HashMap<Box<str>, Vec<(u32, f32)>>,
}

impl Index {
    /// Of the documents in their order, which is that of the numbers in results.
    pub fn new(documents: Vec<Arc<Document>>) -> Self {
        let mut average = [0.0f32; FIELDS];
        for document in &documents {
            for (sum, length) in average.iter_mut().zip(document.lengths) {
                *sum += length;
            }
        }
        let count = documents.len().max(1) as f32;
        for sum in &mut average {
            *sum = (*sum / count).max(f32::EPSILON);
        }
        let mut postings: HashMap<Box<str>, Vec<(u32, f32)>> = HashMap::new();
        for (number, document) in documents.iter().enumerate() {
            let Ok(number) = u32::try_from(number) else { break };
            for (word, counts) in &document.words {
                let mut weighted = 0.0;
                for field in 0..FIELDS {
                    let value = |of: &[f32; FIELDS]| of.get(field).copied().unwrap_or_default();
                    let long = value(&LENGTH) * value(&document.lengths) / value(&average);
                    let norm = 1.0 - value(&LENGTH) + long;
                    weighted += value(&WEIGHTS) * value(counts) / norm.max(f32::EPSILON);
                }
                postings.entry(word.clone()).or_default().push((number, weighted));
            }
        }
        Self { documents, postings }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Each tool's score by words, 0 for none in common; `[len]`, unbounded above.
    pub(crate) fn scores(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.documents.len()];
        let mut terms: HashMap<String, f32> = HashMap::new();
        for word in words(query) {
            *terms.entry(word).or_default() += 1.0;
        }
        let count = self.documents.len() as f32;
        let mut terms: Vec<_> = terms.into_iter().collect();
        // In one order, so that sums of floats are the same each time.
        terms.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (word, _) in terms {
            let Some(postings) = self.postings.get(word.as_str()) else { continue };
            let having = postings.len() as f32;
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            for (number, weighted) in postings {
                if let Some(score) = scores.get_mut(*number as usize) {
                    *score += rarity * weighted / (SATURATION + weighted);
                }
            }
        }
        scores
    }

    /// The tools that a query names outright.
    pub(crate) fn named(&self, query: &str) -> Vec<usize> {
        let wanted = normal(query);
        if wanted.is_empty() {
            return Vec::new();
        }
        let is = |document: &Document| document.names.contains(&wanted);
        let all = self.documents.iter().enumerate();
        all.filter(|(_, document)| is(document)).map(|(number, _)| number).collect()
    }
}
