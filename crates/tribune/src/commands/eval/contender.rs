//! What is measured: a model, and what ranks.

use std::path::Path;

use anyhow::{Context, bail};
use tribune_corpus::{EmbedderChoice, Legs};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    pub embedder: EmbedderChoice,
    pub legs: Legs,
}

impl Contender {
    /// Words need no model, and without a model there are only words.
    pub fn new(embedder: EmbedderChoice, legs: Legs) -> anyhow::Result<Self> {
        Ok(match (embedder, legs) {
            (EmbedderChoice::None, Legs::Meaning) => {
                bail!("ranking by meaning needs a model; choose --embedder minilm, static or the folder of one")
            }
            (EmbedderChoice::None, _) | (_, Legs::Words) => Self { embedder: EmbedderChoice::None, legs: Legs::Words },
            (embedder, legs) => Self { embedder, legs },
        })
    }

    /// `MODEL` or `MODEL:LEGS`.
    pub fn parse(spec: &str) -> anyhow::Result<Self> {
        let parts = spec.rsplit_once(':').map(|(model, legs)| (model, legs_named(legs)));
        match parts {
            Some((model, Ok(legs))) => Self::new(model_named(model)?, legs),
            // A colon may be part of a path.
            _ => Self::new(model_named(spec)?, Legs::Both),
        }
    }

    pub const fn legs_name(&self) -> &'static str {
        match self.legs {
            Legs::Both => "both",
            Legs::Words => "words",
            Legs::Meaning => "meaning",
        }
    }

    pub fn embedder_name(&self) -> String {
        match &self.embedder {
            EmbedderChoice::MiniLm => "minilm".to_owned(),
            EmbedderChoice::Static => "static".to_owned(),
            EmbedderChoice::None => "none".to_owned(),
            EmbedderChoice::Folder(path) => path.display().to_string(),
            EmbedderChoice::Api { model, .. } => model.clone(),
        }
    }
}

/// What `--legs` means.
pub fn legs_named(name: &str) -> anyhow::Result<Legs> {
    let known = [("both", Legs::Both), ("words", Legs::Words), ("meaning", Legs::Meaning)];
    let legs = known.iter().find(|(known, _)| *known == name);
    legs.map(|(_, legs)| *legs).with_context(|| format!("there are no legs `{name}`; use both, words or meaning"))
}

/// What `--embedder` means.
pub fn model_named(name: &str) -> anyhow::Result<EmbedderChoice> {
    Ok(match name {
        "minilm" => EmbedderChoice::MiniLm,
        "static" => EmbedderChoice::Static,
        "none" => EmbedderChoice::None,
        folder if Path::new(folder).is_dir() => EmbedderChoice::Folder(Path::new(folder).canonicalize()?),
        other => bail!(
            "there is no model `{other}`; use minilm, static, none, or the folder of a sentence-transformer model"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_names_a_model_and_its_legs() {
        let contender = |embedder, legs| Contender { embedder, legs };
        for (spec, wanted) in [
            ("minilm", contender(EmbedderChoice::MiniLm, Legs::Both)),
            ("minilm:meaning", contender(EmbedderChoice::MiniLm, Legs::Meaning)),
            ("static:both", contender(EmbedderChoice::Static, Legs::Both)),
            ("minilm:words", contender(EmbedderChoice::None, Legs::Words)),
            ("none", contender(EmbedderChoice::None, Legs::Words)),
        ] {
            assert_eq!(Contender::parse(spec).expect(spec), wanted);
        }
        let dir = tempfile::Builder::new().prefix("a:b").tempdir().expect("a folder");
        let folder = contender(EmbedderChoice::Folder(dir.path().to_owned()), Legs::Meaning);
        let spec = format!("{}:meaning", dir.path().display());
        assert_eq!(Contender::parse(&spec).expect("a folder"), folder);
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        for (spec, told) in [
            ("none:meaning", "needs a model"),
            ("minlm", "there is no model `minlm`"),
            ("minilm:sense", "there is no model `minilm:sense`"),
        ] {
            let message = Contender::parse(spec).expect_err("refused").to_string();
            assert!(message.contains(told), "{message}");
        }
    }
}
