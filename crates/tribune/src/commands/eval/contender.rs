//! What is measured: a model and by what it ranks.

use std::path::Path;

use anyhow::bail;
use tribune_corpus::Legs;

use crate::cli::LegsWish;
use tribune_corpus::EmbedderChoice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    pub embedder: EmbedderChoice,
    pub legs: Legs,
}

impl Contender {
    /// Words need no model, and without a model there are only words.
    pub fn new(embedder: EmbedderChoice, legs: LegsWish) -> anyhow::Result<Self> {
        let legs = match legs {
            LegsWish::Both => Legs::Both,
            LegsWish::Words => Legs::Words,
            LegsWish::Meaning => Legs::Meaning,
        };
        Ok(match (embedder, legs) {
            (EmbedderChoice::None, Legs::Meaning) => {
                bail!("ranking by meaning needs a model; choose --embedder minilm, static or the folder of one")
            }
            (EmbedderChoice::None, _) | (_, Legs::Words) => Self {
                embedder: EmbedderChoice::None,
                legs: Legs::Words,
            },
            (embedder, legs) => Self { embedder, legs },
        })
    }

    /// `MODEL` or `MODEL:LEGS`.
    pub fn parse(spec: &str) -> anyhow::Result<Self> {
        let (model, legs) = match spec.rsplit_once(':') {
            Some((model, "both")) => (model, LegsWish::Both),
            Some((model, "words")) => (model, LegsWish::Words),
            Some((model, "meaning")) => (model, LegsWish::Meaning),
            // A colon may be part of a path.
            _ => (spec, LegsWish::Both),
        };
        Self::new(model_named(model)?, legs)
    }

    pub fn legs_name(&self) -> &'static str {
        match self.legs {
            Legs::Both => "both",
            Legs::Words => "words",
            Legs::Meaning => "meaning",
        }
    }

    pub fn embedder_name(&self) -> String {
        embedder_name(&self.embedder)
    }
}

/// What `--embedder` means.
pub fn model_named(name: &str) -> anyhow::Result<EmbedderChoice> {
    Ok(match name {
        "minilm" => EmbedderChoice::MiniLm,
        "static" => EmbedderChoice::Static,
        "none" => EmbedderChoice::None,
        folder if Path::new(folder).is_dir() => EmbedderChoice::Folder(folder.into()),
        other => bail!(
            "there is no model `{other}`; use minilm, static, none, or the folder of a sentence-transformer model"
        ),
    })
}

pub fn embedder_name(choice: &EmbedderChoice) -> String {
    match choice {
        EmbedderChoice::MiniLm => "minilm".to_owned(),
        EmbedderChoice::Static => "static".to_owned(),
        EmbedderChoice::None => "none".to_owned(),
        EmbedderChoice::Folder(path) => path.display().to_string(),
        EmbedderChoice::Api { model, .. } => model.clone(),
    }
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
