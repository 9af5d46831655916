//! Placeholder for the models that turn texts into vectors: the names, and a plain scan.

pub enum Role {
    Query,
    Passage,
}

#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct EmbedError;

pub trait Embedder: Send + Sync {
    fn name(&self) -> &str;
    fn fingerprint(&self) -> &str;
    fn dimensions(&self) -> usize;
    fn batch(&self) -> usize {
        8
    }
    fn weight(&self) -> f32 {
        0.5
    }
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

pub mod scan {
    pub fn quantise(v: &[f32]) -> (Vec<i8>, f32) {
        (v.iter().map(|x| (x * 127.0) as i8).collect(), 1.0 / 127.0)
    }

    pub struct ScanQuery(Vec<i8>);

    impl ScanQuery {
        pub fn new(v: &[f32]) -> Self {
            Self(quantise(v).0)
        }

        pub fn cosine(&self, dot: i32, _sum: i32, scale: f32) -> f32 {
            dot as f32 * scale / 127.0
        }
    }

    pub fn dots(query: &ScanQuery, rows: &[i8], out: &mut [i32]) {
        for (row, dot) in rows.chunks_exact(query.0.len()).zip(out) {
            *dot = query
                .0
                .iter()
                .zip(row)
                .map(|(a, b)| i32::from(*a) * i32::from(*b))
                .sum();
        }
    }
}
