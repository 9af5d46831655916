use serde::Deserialize;

use crate::EmbedError;

/// Far above every supported model; a broken file must not allocate all memory.
const MAX_HIDDEN: usize = 8192;
const MAX_LAYERS: usize = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    Bert,
    Roberta,
    DistilBert,
    MpNet,
}

/// The shape of an encoder.
#[derive(Debug)]
pub struct Config {
    pub architecture: Architecture,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub positions: usize,
    /// The row of the position table for the first token.
    pub first_position: usize,
    pub epsilon: f32,
}

#[derive(Deserialize)]
struct File {
    model_type: Option<String>,
    #[serde(alias = "dim")]
    hidden_size: usize,
    #[serde(alias = "n_layers")]
    num_hidden_layers: usize,
    #[serde(alias = "n_heads")]
    num_attention_heads: usize,
    max_position_embeddings: usize,
    layer_norm_eps: Option<f32>,
    #[serde(alias = "activation")]
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    pad_token_id: Option<usize>,
}

impl Config {
    pub fn parse(bytes: &[u8]) -> Result<Self, EmbedError> {
        let file: File =
            serde_json::from_slice(bytes).map_err(|error| EmbedError::model(format!("config.json: {error}")))?;
        let architecture = match file.model_type.as_deref() {
            Some("bert") => Architecture::Bert,
            Some("roberta" | "xlm-roberta" | "camembert") => Architecture::Roberta,
            Some("distilbert") => Architecture::DistilBert,
            Some("mpnet") => Architecture::MpNet,
            other => {
                return Err(EmbedError::model(format!(
                    "config.json: models of type {:?} are not supported; bert, roberta, xlm-roberta, distilbert and \
                     mpnet are, and any other behind an embeddings endpoint",
                    other.unwrap_or("(none)")
                )));
            }
        };
        if let Some(activation) = file.hidden_act.as_deref().filter(|name| *name != "gelu") {
            return Err(EmbedError::model(format!(
                "config.json: the activation {activation:?} is not supported; gelu is"
            )));
        }
        if let Some(kind) = file.position_embedding_type.as_deref().filter(|name| *name != "absolute") {
            return Err(EmbedError::model(format!(
                "config.json: positions of the kind {kind:?} are not supported; absolute ones are"
            )));
        }
        let sound = (1..=MAX_HIDDEN).contains(&file.hidden_size)
            && (1..=MAX_LAYERS).contains(&file.num_hidden_layers)
            && file.num_attention_heads > 0
            && file.hidden_size.is_multiple_of(file.num_attention_heads);
        // These two count positions from the padding token's id plus one.
        let first_position = match architecture {
            Architecture::Roberta | Architecture::MpNet => file.pad_token_id.unwrap_or(1).saturating_add(1),
            Architecture::Bert | Architecture::DistilBert => 0,
        };
        if !sound || file.max_position_embeddings <= first_position {
            return Err(EmbedError::model("config.json: the sizes in it make no encoder"));
        }
        Ok(Self {
            architecture,
            hidden: file.hidden_size,
            layers: file.num_hidden_layers,
            heads: file.num_attention_heads,
            positions: file.max_position_embeddings,
            first_position,
            epsilon: file.layer_norm_eps.unwrap_or(1e-12),
        })
    }

    /// The longest text that the position table allows.
    pub fn max_tokens(&self) -> usize {
        self.positions - self.first_position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: &str = r#""num_hidden_layers":1,"num_attention_heads":2,"max_position_embeddings":8"#;

    fn parse(rest: &str) -> Result<Config, String> {
        Config::parse(format!("{{{SIZES},{rest}}}").as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn unsupported_architecture_error_lists_supported_ones() {
        let error = parse(r#""hidden_size":4,"model_type":"modernbert""#).expect_err("is refused");
        assert!(error.contains("modernbert") && error.contains("distilbert"), "{error}");
        assert!(parse(r#""hidden_size":4,"model_type":"bert","hidden_act":"silu""#).is_err());
        assert!(parse(r#""hidden_size":4,"model_type":"bert","position_embedding_type":"rotary""#).is_err());
    }

    #[test]
    fn invalid_sizes_are_refused() {
        assert!(parse(r#""hidden_size":5,"model_type":"bert""#).is_err());
        assert!(parse(r#""hidden_size":4000000000,"model_type":"bert""#).is_err());
        assert!(parse(r#""hidden_size":4,"model_type":"roberta","pad_token_id":7"#).is_err());
        assert!(parse(r#""hidden_size":4,"model_type":"bert""#).is_ok());
    }
}
