//! Whether search finds the right tool: hit, recall and rank on sets of questions with known
//! answers, by words and with the model.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use search::{Document, Engine, Hit, Index, Mode, Places, Status, Text};
use serde::Deserialize;
use serde_json::Value;

/// What `search` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder with the sets
    #[arg(long, default_value = "tests/search-bench")]
    sets: PathBuf,
    /// The model's folder; without it, words alone are measured
    #[arg(long)]
    model: Option<PathBuf>,
    /// ONNX Runtime's file; by default the one in the model's folder
    #[arg(long)]
    onnxruntime: Option<PathBuf>,
    /// Measure each kind of question apart
    #[arg(long)]
    kinds: bool,
}

#[derive(Deserialize)]
struct Tool {
    server: String,
    tool: String,
    description: String,
    #[serde(default)]
    input_schema: Value,
    #[serde(default)]
    server_description: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    query: String,
    relevant: Vec<String>,
    kind: String,
}

/// One set, ready to be searched.
struct Set {
    name: String,
    places: HashMap<String, usize>,
    index: Index,
    questions: Vec<Question>,
}

pub(crate) fn main(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(run(args))
}

#[expect(clippy::print_stdout, reason = "the report is what was asked for")]
async fn run(args: &Args) -> anyhow::Result<()> {
    let engine = match &args.model {
        Some(model) => {
            let beside = model.join(search::LIBRARY);
            let libraries = vec![args.onnxruntime.clone().unwrap_or(beside)];
            ready(Places { libraries, model: model.clone() }).await?
        }
        None => Engine::lexical(),
    };
    println!(
        "| set | questions | search | hit@1 | hit@5 | hit@10 | recall@1 | recall@5 | MRR@10 | a question |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut folders: Vec<_> = std::fs::read_dir(&args.sets)
        .with_context(|| format!("failed to read `{}`", args.sets.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        let (set, documents) = read(&folder)?;
        engine.take_in(documents);
        engine.settled(Duration::from_secs(1800)).await;
        let mut kinds: Vec<Option<&str>> = vec![None];
        if args.kinds {
            let mut all: Vec<&str> = set.questions.iter().map(|each| each.kind.as_str()).collect();
            all.sort_unstable();
            all.dedup();
            kinds.extend(all.into_iter().map(Some));
        }
        for kind in kinds {
            println!("{}", measure(&engine, &set, kind, true).await);
            if args.model.is_some() {
                println!("{}", measure(&engine, &set, kind, false).await);
            }
        }
    }
    Ok(())
}

/// The engine with its model loaded.
async fn ready(places: Places) -> anyhow::Result<Engine> {
    let engine = Engine::start(places, Vec::new(), |_| {});
    loop {
        match engine.status() {
            Status::Loading => tokio::time::sleep(Duration::from_millis(50)).await,
            Status::Ready { .. } => return Ok(engine),
            Status::Failed(why) => anyhow::bail!("{why}"),
            Status::Off => anyhow::bail!("no model is set up"),
        }
    }
}

fn read(folder: &std::path::Path) -> anyhow::Result<(Set, Vec<Arc<Document>>)> {
    let text = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path)
            .with_context(|| format!("failed to read `{}`", path.display()))
    };
    let mut places = HashMap::new();
    let mut documents = Vec::new();
    for line in text("tools.jsonl")?.lines() {
        let tool: Tool = serde_json::from_str(line)?;
        places.insert(format!("{}/{}", tool.server, tool.tool), documents.len());
        documents.push(Arc::new(document(&tool)));
    }
    let questions = text("dev.jsonl")?;
    let questions = questions.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let index = Index::new(documents.clone());
    Ok((Set { name, places, index, questions }, documents))
}

fn document(tool: &Tool) -> Document {
    let schema = coach::Schema::compile(&tool.input_schema.to_string());
    let arguments: Vec<_> =
        schema.arguments().into_iter().map(|each| (each.name, each.description)).collect();
    Document::new(&Text {
        server: &tool.server,
        server_about: tool.server_description.as_deref().unwrap_or_default(),
        exposed: &tool.tool,
        name: &tool.tool,
        title: "",
        description: &tool.description,
        arguments: &arguments,
    })
}

/// A line of the table.
async fn measure(engine: &Engine, set: &Set, kind: Option<&str>, words: bool) -> String {
    let mut sums = [0.0f64; 6];
    let (mut count, mut spent) = (0, Duration::ZERO);
    let mut mode = Mode::Lexical;
    for question in &set.questions {
        if kind.is_some_and(|kind| kind != question.kind) {
            continue;
        }
        let relevant: Vec<usize> =
            question.relevant.iter().filter_map(|name| set.places.get(name).copied()).collect();
        let begun = Instant::now();
        let found = match words {
            true => engine.by_words(&set.index, &question.query, usize::MAX),
            false => engine.search(&set.index, &question.query, usize::MAX).await,
        };
        spent += begun.elapsed();
        mode = found.mode;
        let ranks: Vec<f64> = relevant.iter().map(|one| rank(&found.hits, *one)).collect();
        let best = ranks.iter().copied().fold(f64::INFINITY, f64::min);
        let within = |most: f64| f64::from(u8::from(best <= most));
        let recall = |most: f64| {
            ranks.iter().filter(|rank| **rank <= most).count() as f64 / ranks.len().max(1) as f64
        };
        let reciprocal = if best <= 10.0 { 1.0 / best } else { 0.0 };
        let values = [within(1.0), within(5.0), within(10.0), recall(1.0), recall(5.0), reciprocal];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
        count += 1;
    }
    let means: Vec<String> =
        sums.iter().map(|sum| format!("{:.3}", sum / f64::from(count.max(1)))).collect();
    let name = kind.map_or_else(|| set.name.clone(), |kind| format!("{} / {kind}", set.name));
    format!(
        "| {name} | {count} | {} | {} | {:.2} ms |",
        mode.as_str(),
        means.join(" | "),
        spent.as_secs_f64() * 1000.0 / f64::from(count.max(1))
    )
}

/// The place of a tool among the hits, from 1; those of equal score share the middle place,
/// and what was not found comes last.
fn rank(hits: &[Hit], document: usize) -> f64 {
    let Some(own) = hits.iter().find(|hit| hit.document == document) else { return f64::INFINITY };
    let before = hits.iter().filter(|hit| hit.score > own.score).count();
    let equal = hits.iter().filter(|hit| hit.score == own.score).count();
    before as f64 + (equal as f64 + 1.0) / 2.0
}
