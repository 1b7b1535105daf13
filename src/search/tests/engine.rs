//! The engine as the manager uses it: by words alone, with the real small model, and with
//! models that cannot be used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpm_search::{Document, Engine, Found, Index, LIBRARY, Mode, Places, Status, Text, Vector};

/// The small model, as `tests/setup.sh` brings it.
fn places() -> Places {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/.cache/models/minilm");
    let library = folder.join(LIBRARY);
    assert!(library.is_file(), "{} is missing: run tests/setup.sh models", library.display());
    Places { libraries: vec![library], model: folder }
}

fn document(server: &str, name: &str, description: &str) -> Arc<Document> {
    let text = Text {
        server,
        server_about: "",
        exposed: name,
        name,
        title: "",
        description,
        arguments: &[],
    };
    Arc::new(Document::new(&text))
}

fn house() -> Vec<Arc<Document>> {
    vec![
        document("mail", "send_mail", "Sends an e-mail to one or more people."),
        document("files", "delete_file", "Removes a file from the disk."),
        document("weather", "forecast", "Tells rain and temperature for the coming days."),
        document("browser", "take_screenshot", "Saves a picture of the page."),
    ]
}

fn best(found: &Found) -> Option<usize> {
    found.hits.first().map(|hit| hit.document)
}

async fn ready(engine: &Engine) {
    while engine.status() == Status::Loading {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(matches!(engine.status(), Status::Ready { .. }), "{:?}", engine.status());
}

#[tokio::test]
async fn p61_words_answer_without_a_model() {
    let engine = Engine::lexical();
    let index = Index::new(house());
    let found = engine.search(&index, "send an email message", 5).await;
    assert_eq!((found.mode, best(&found)), (Mode::Lexical, Some(0)));
    assert!(found.hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    assert!(engine.search(&index, "umbrella", 5).await.hits.is_empty());
    assert!(engine.search(&index, "  ", 5).await.hits.is_empty());
    for name in ["take_screenshot", "takeScreenshot", "Take-Screenshot"] {
        let found = engine.search(&index, name, 5).await;
        assert_eq!(best(&found), Some(3), "{name}");
    }
    engine.take_in(house());
    engine.settled(Duration::from_secs(60)).await;
    assert_eq!(engine.status(), Status::Off);
}

#[tokio::test]
async fn p61_meaning_finds_what_words_do_not() {
    let engine = Engine::start(places(), Vec::new(), |_| {});
    let index = Index::new(house());
    // Until the model is there, words answer (PLT-04).
    let early = engine.search(&index, "send an email", 5).await;
    assert_eq!(best(&early), Some(0));
    ready(&engine).await;
    engine.take_in(house());
    engine.settled(Duration::from_secs(60)).await;
    let found = engine.search(&index, "will I need an umbrella tomorrow?", 5).await;
    assert_eq!((found.mode, best(&found)), (Mode::Semantic, Some(2)));
    assert!(found.hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    assert!(engine.by_words(&index, "umbrella", 5).hits.is_empty());
    assert_eq!(best(&engine.search(&index, "delete_file", 5).await), Some(1));
    // A tool that came just now goes by its words until its vector is made.
    let mut more = house();
    more.push(document("zoo", "feed_penguin", "Gives fish to a penguin."));
    let found = engine.search(&Index::new(more), "feed a penguin", 5).await;
    assert_eq!(best(&found), Some(4));
    // One tool alone is found by its meaning, too.
    let alone = Index::new(house().split_off(3));
    assert_eq!(best(&engine.search(&alone, "umbrella", 5).await), Some(0));
}

#[tokio::test]
async fn p62_a_restart_embeds_nothing_anew() {
    let kept: Arc<Mutex<Vec<Vector>>> = Arc::default();
    let keep = {
        let kept = kept.clone();
        move |vector| kept.lock().expect("not poisoned").push(vector)
    };
    let engine = Engine::start(places(), Vec::new(), keep);
    engine.take_in(house());
    engine.settled(Duration::from_secs(60)).await;
    let first = kept.lock().expect("not poisoned").clone();
    assert_eq!(first.len(), house().len());
    let asked = "get rid of a document";
    let before = engine.search(&Index::new(house()), asked, 5).await;
    drop(engine);

    let again = Engine::start(places(), first, |vector| panic!("embedded anew: {vector:?}"));
    ready(&again).await;
    again.take_in(house());
    again.settled(Duration::from_secs(60)).await;
    assert_eq!(again.search(&Index::new(house()), asked, 5).await, before);
}

#[tokio::test]
async fn p61_a_model_that_cannot_be_used_is_told_and_words_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let good = places();
    let tried = |places: Places| async move {
        let engine = Engine::start(places, Vec::new(), |_| {});
        while engine.status() == Status::Loading {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = engine.search(&Index::new(house()), "send an email", 5).await;
        assert_eq!((found.mode, best(&found)), (Mode::Lexical, Some(0)));
        engine.take_in(house());
        engine.settled(Duration::from_secs(60)).await;
        match engine.status() {
            Status::Failed(why) => why.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let no_library = Places { libraries: vec![PathBuf::from("/nowhere/lib.so")], ..good.clone() };
    let why = tried(no_library).await;
    assert!(why.contains("/nowhere/lib.so") && why.contains("search.onnxruntime"), "{why}");

    let empty = Places { model: folder.path().to_owned(), ..good.clone() };
    assert!(tried(empty.clone()).await.contains("model.onnx"));

    std::fs::write(file("library"), "no library").expect("written");
    let odd = Places { libraries: vec![file("library")], ..good.clone() };
    let why = tried(odd).await;
    assert!(why.contains("cannot be loaded"), "{why}");

    // Cut short, as a download that broke off leaves it.
    let whole = std::fs::read(good.model.join("model.onnx")).expect("the model");
    std::fs::write(file("model.onnx"), &whole[..whole.len() / 2]).expect("written");
    std::fs::copy(good.model.join("tokenizer.json"), file("tokenizer.json")).expect("copied");
    let why = tried(empty.clone()).await;
    assert!(why.contains("cannot be used"), "{why}");
}
