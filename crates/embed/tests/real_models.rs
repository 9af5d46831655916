//! Real model folders, which are too large to keep here: all of them all-MiniLM-L6-v2 in some form.
//!
//!     TRIBUNE_EMBED_FOLDERS=/a:/b cargo test --package tribune-embed --test real_models -- --ignored --nocapture

use std::path::Path;

use serde_json::Value;
use tribune_embed::{Embedder, Role, folder};

#[test]
#[ignore = "needs models that are not part of the repository"]
fn vectors_of_other_files_of_the_model_are_those_of_the_reference() {
    let folders = std::env::var("TRIBUNE_EMBED_FOLDERS").expect("TRIBUNE_EMBED_FOLDERS names folders");
    for place in folders.split(':') {
        let start = std::time::Instant::now();
        let model = folder::load(Path::new(place)).expect("loads");
        let loaded = start.elapsed();
        let mut cosines = Vec::new();
        for line in include_str!("minilm_reference.jsonl").lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let vectors = model
                .embed(Role::Passage, &[line["text"].as_str().expect("a text")])
                .expect("embeds");
            let expected = line["vector"]
                .as_array()
                .expect("a vector")
                .iter()
                .filter_map(Value::as_f64);
            cosines.push(
                vectors[0]
                    .iter()
                    .zip(expected)
                    .map(|(a, b)| f64::from(*a) * b)
                    .sum::<f64>(),
            );
        }
        let least = cosines.iter().copied().fold(1.0, f64::min);
        let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
        eprintln!(
            "{place}: {}, loaded in {loaded:.0?}, cosine least {least:.5}, mean {mean:.5}",
            model.fingerprint()
        );
        // Graphs with one scale for a whole matrix lose as much by themselves: ONNX Runtime gets 0.937 out of one.
        assert!(least > 0.93, "{place}: {least}");
    }
}
