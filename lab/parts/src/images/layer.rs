//! The one layer of an image, as a tar stream.

use std::fs::File;
use std::io::{self, Write};

use tar::{Builder, EntryType, Header};

use super::{Entry, Image, Source};

/// Writes the layer. The bytes follow from the entries alone.
pub(super) fn write(image: &Image, writer: &mut dyn Write) -> io::Result<()> {
    let mut builder = Builder::new(writer);
    for (path, entry) in &image.entries {
        append(&mut builder, path, entry)?;
    }
    builder.into_inner().map(drop)
}

fn append<W: Write>(builder: &mut Builder<W>, path: &str, entry: &Entry) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    match entry {
        Entry::Directory(mode) => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            header.set_size(0);
            builder.append_data(&mut header, format!("{path}/"), io::empty())
        }
        Entry::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            builder.append_link(&mut header, path, target)
        }
        Entry::File(source, mode) => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(*mode);
            match source {
                Source::Bytes(bytes) => {
                    header.set_size(bytes.len() as u64);
                    builder.append_data(&mut header, path, bytes.as_slice())
                }
                Source::Path(source) => {
                    let name = |error: io::Error| {
                        io::Error::new(error.kind(), format!("{}: {error}", source.display()))
                    };
                    let file = File::open(source).map_err(name)?;
                    header.set_size(file.metadata().map_err(name)?.len());
                    builder.append_data(&mut header, path, file).map_err(name)
                }
            }
        }
    }
}
