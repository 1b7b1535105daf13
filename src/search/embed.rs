//! Text into a vector of unit length, by a model on ONNX Runtime. Blocks; its one thread is
//! that of [`crate::engine`].

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::Tensor;
use tokenizers::{Tokenizer, TruncationParams};

use crate::model::{self, ModelId, Prompts, Unusable};

/// Tokens of a text that the model reads.
const TOKENS: usize = 256;

/// A model that is ready.
pub(crate) struct Embedder {
    session: Session,
    tokenizer: Tokenizer,
    prompts: Prompts,
    /// Which of `input_ids`, `attention_mask` and `token_type_ids` the model takes.
    inputs: Vec<String>,
    output: Output,
    pub(crate) id: ModelId,
}

/// Where the vector is.
enum Output {
    /// The model gives it, under this name.
    Whole(String),
    /// It is the mean over the tokens of this one.
    Tokens(String),
}

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Query,
    Document,
}

impl Embedder {
    /// Loads the runtime and the model.
    pub(crate) fn load(library: &Path, folder: &Path) -> Result<Self, Unusable> {
        let id = model::id(folder)?;
        let broken = |why: String| Unusable::Model { folder: folder.to_owned(), why };
        let environment = environment(library)
            .map_err(|why| Unusable::Library { path: library.to_owned(), why: first_line(&why) })?;
        let session = (|| -> Result<Session, String> {
            let text = |error: &dyn std::fmt::Display| first_line(&error.to_string());
            let builder = Session::builder(&environment).map_err(|error| text(&error))?;
            let builder = builder.with_intra_threads(1).map_err(|error| text(&error))?;
            let builder = builder.with_inter_threads(1).map_err(|error| text(&error))?;
            let builder = builder.with_intra_op_spinning(false).map_err(|error| text(&error))?;
            let mut builder = builder
                .with_optimization_level(GraphOptimizationLevel::Level3)
                .map_err(|error| text(&error))?;
            builder.commit_from_file(folder.join("model.onnx")).map_err(|error| text(&error))
        })()
        .map_err(broken)?;
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))
            .map_err(|error| broken(format!("tokenizer.json: {error}")))?;
        // A tokenizer file may pad every text to one length, and each token is paid for.
        tokenizer.with_padding(None);
        let cut = TruncationParams { max_length: TOKENS, ..TruncationParams::default() };
        tokenizer
            .with_truncation(Some(cut))
            .map_err(|error| broken(format!("tokenizer.json: {error}")))?;
        let inputs = session.inputs().iter().map(|input| input.name().to_owned()).collect();
        let output = output(&session).ok_or_else(|| broken("it has no usable output".into()))?;
        Ok(Self { session, tokenizer, prompts: model::prompts(folder), inputs, output, id })
    }

    /// The vector of a text, unit length.
    ///
    /// # Errors
    /// Says what the model said.
    pub(crate) fn embed(&mut self, text: &str, role: Role) -> Result<Vec<f32>, String> {
        let prompt = match role {
            Role::Query => &self.prompts.query,
            Role::Document => &self.prompts.document,
        };
        let text = format!("{prompt}{text}");
        let encoded = self.tokenizer.encode_fast(text, true).map_err(|error| error.to_string())?;
        let length = encoded.get_ids().len();
        if length == 0 {
            return Err("the text has no tokens".to_owned());
        }
        let mut inputs: Vec<(&str, ort::session::SessionInputValue<'_>)> = Vec::new();
        for name in &self.inputs {
            let values: Vec<i64> = match name.as_str() {
                "input_ids" => encoded.get_ids().iter().map(|id| i64::from(*id)).collect(),
                "attention_mask" => vec![1; length],
                _ => vec![0; length],
            };
            let tensor = Tensor::from_array(([1, length], values));
            inputs.push((name, tensor.map_err(|error| error.to_string())?.into()));
        }
        let outputs = self.session.run(inputs).map_err(|error| error.to_string())?;
        let (name, whole) = match &self.output {
            Output::Whole(name) => (name, true),
            Output::Tokens(name) => (name, false),
        };
        let value = outputs.get(name).ok_or("its output is missing")?;
        let (_, data) = value.try_extract_tensor::<f32>().map_err(|error| error.to_string())?;
        let mut vector = if whole { data.to_vec() } else { mean(data, length) };
        normalise(&mut vector)?;
        Ok(vector)
    }
}

/// ONNX Runtime, loaded once: a process can have no second one.
fn environment(library: &Path) -> Result<Environment, String> {
    static LOADED: Mutex<Option<Environment>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*loaded {
        return Ok(environment.clone());
    }
    // `ort::init` would panic where there is none.
    let builder = ort::init_from(library).map_err(|error| error.to_string())?;
    let environment = builder.build().map_err(|error| error.to_string())?;
    Ok(loaded.insert(environment).clone())
}

fn output(session: &Session) -> Option<Output> {
    let names: Vec<&str> = session.outputs().iter().map(|output| output.name()).collect();
    let has = |wanted: &str| names.contains(&wanted).then(|| wanted.to_owned());
    has("sentence_embedding")
        .map(Output::Whole)
        .or_else(|| has("last_hidden_state").map(Output::Tokens))
        .or_else(|| names.first().map(|name| Output::Tokens((*name).to_owned())))
}

/// The mean of `length` rows.
fn mean(data: &[f32], length: usize) -> Vec<f32> {
    let width = data.len() / length.max(1);
    let mut sum = vec![0.0; width];
    for row in data.chunks_exact(width.max(1)) {
        for (total, value) in sum.iter_mut().zip(row) {
            *total += value;
        }
    }
    sum
}

fn normalise(vector: &mut [f32]) -> Result<(), String> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() || length <= f32::EPSILON {
        return Err("the vector has no direction".to_owned());
    }
    for value in vector.iter_mut() {
        *value /= length;
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
