//! Makes the model that comes with the program: `pack <folder of a sentence transformer> <model.safetensors to write>`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err("usage: pack <folder of a sentence transformer> <model.safetensors to write>".into());
    };
    let bytes = tribune_embed::folder::pack(Path::new(&folder))?;
    std::fs::write(target, bytes)?;
    Ok(())
}
