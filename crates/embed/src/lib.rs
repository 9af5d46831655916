pub enum Role { Query, Passage }
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct EmbedError;
pub trait Embedder: Send + Sync {
    fn name(&self) -> &str;
    fn fingerprint(&self) -> &str;
    fn dimensions(&self) -> usize;
    fn batch(&self) -> usize { 8 }
    fn weight(&self) -> f32 { 0.5 }
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}
pub mod scan {
    pub fn quantise(v: &[f32]) -> (Vec<i8>, f32) { (v.iter().map(|x| (x*127.0) as i8).collect(), 1.0/127.0) }
    pub struct ScanQuery(pub Vec<i8>);
    pub struct Rows<'a> { pub records: &'a [u8], pub stride: usize, pub offset: usize, pub dimensions: usize }
    impl ScanQuery { pub fn new(v: &[f32]) -> Self { Self(quantise(v).0) } pub fn scale(&self) -> f32 { 1.0 / 127.0 } }
    pub fn dots(_q: &ScanQuery, _rows: Rows<'_>, _out: &mut [i32]) {}
}
