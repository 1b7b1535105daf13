//! An embedding model on disk: which files it has, and how it wants its texts.
//!
//! Any folder with `model.onnx` and `tokenizer.json` works. Where a model wants a few words
//! before each text, `config_sentence_transformers.json` says them, as its makers publish it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Tells one model from all others, whatever its folder is called.
pub type ModelId = [u8; 32];

/// Why there is no search by meaning; search by words goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A file is missing or cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// ONNX Runtime itself cannot be loaded.
    #[error("ONNX Runtime cannot be loaded from `{}`: {why}", path.display())]
    Library {
        /// Which file was tried.
        path: PathBuf,
        /// What the loader said.
        why: String,
    },
    /// There is no ONNX Runtime at any of the places where it is looked for.
    #[error(
        "there is no ONNX Runtime (`{name}`) at {places}; set `search.onnxruntime` to its file"
    )]
    NoLibrary {
        /// The file's name here.
        name: &'static str,
        /// Where it was looked for.
        places: String,
    },
    /// A file of the model is damaged or of another kind.
    #[error("the model in `{}` cannot be used: {why}", folder.display())]
    Model {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// How a model wants its texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompts {
    pub(crate) query: String,
    pub(crate) document: String,
}

/// What is read of `config_sentence_transformers.json`.
#[derive(Deserialize, Default)]
struct Published {
    #[serde(default)]
    prompts: std::collections::BTreeMap<String, String>,
}

/// The words before each text; none where the model's makers name none.
pub(crate) fn prompts(folder: &Path) -> Prompts {
    let text = std::fs::read_to_string(folder.join("config_sentence_transformers.json"));
    let published: Published =
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let of = |names: [&str; 3]| {
        let found = names.iter().find_map(|name| published.prompts.get(*name));
        found.cloned().unwrap_or_default()
    };
    Prompts {
        query: of(["query", "Retrieval-query", "search_query"]),
        document: of(["document", "Retrieval-document", "search_document"]),
    }
}

/// What tells the model in a folder from others: the bytes of its files.
pub(crate) fn id(folder: &Path) -> Result<ModelId, Unusable> {
    let mut hash = Sha256::new();
    for name in ["model.onnx", "tokenizer.json"] {
        digest(&folder.join(name), &mut hash)?;
    }
    // Weights that are kept beside the model: too long to be read twice at each start.
    let beside = std::fs::metadata(folder.join("model.onnx_data")).map_or(0, |found| found.len());
    hash.update(beside.to_be_bytes());
    let Prompts { query, document } = prompts(folder);
    hash.update((query.len() as u64).to_be_bytes());
    hash.update(query);
    hash.update(document);
    Ok(hash.finalize().into())
}

fn digest(path: &Path, hash: &mut Sha256) -> Result<(), Unusable> {
    let told =
        |error: std::io::Error| Unusable::File { path: path.to_owned(), why: error.to_string() };
    let mut file = File::open(path).map_err(told)?;
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk).map_err(told)? {
            0 => return Ok(()),
            read => hash.update(chunk.get(..read).unwrap_or_default()),
        }
    }
}

/// The name of ONNX Runtime's file on this system.
pub const LIBRARY: &str = if cfg!(target_os = "windows") {
    "onnxruntime.dll"
} else if cfg!(target_os = "macos") {
    "libonnxruntime.dylib"
} else {
    "libonnxruntime.so"
};

/// Where ONNX Runtime is: the first place of those that has the file.
///
/// # Errors
/// [`Unusable::NoLibrary`] names the places.
pub(crate) fn library(places: &[PathBuf]) -> Result<PathBuf, Unusable> {
    let found = places.iter().find(|path| path.is_file());
    let named = || places.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>();
    found.cloned().ok_or_else(|| Unusable::NoLibrary { name: LIBRARY, places: named().join(", ") })
}
