//! IDX: the format of MNIST and its kin.
//!
//! ```text
//!   images: u32 BE 0x00000803 | items | rows | columns | items x rows x columns bytes
//!   labels: u32 BE 0x00000801 | items |                  items bytes
//! ```
//!
//! Only unsigned bytes are read. Pixels become `byte / 255`.

use super::error::{Error, Place, Problem};
use super::examples::{Center, Dense, Examples, Features, Shape};
use super::labels::Labels;
use super::source::Source;
use super::{EXAMPLES_MAX, FEATURES_MAX, Options, Partition};
use std::path::Path;

const IMAGES: u32 = 0x0000_0803;
const LABELS: u32 = 0x0000_0801;

/// Reads a part of a pair of files; a test set with the shape of its training set.
pub(crate) fn read(
    images: &Path,
    labels: &Path,
    part: Partition,
    options: &Options,
    shape: Option<&Shape>,
) -> Result<Examples, Error> {
    let mut images = Source::open(images)?;
    let mut labels = Source::open(labels)?;
    let (count, width) = image_header(&mut images)?;
    magic(&mut labels, LABELS, "IDX, one dimension of bytes: labels")?;
    let label_count = be32(&mut labels)?;
    if label_count != count {
        return Err(Error::new(labels.path(), Place::Byte(4), mismatch(count, label_count)));
    }
    if let Some(expected) = shape.map(|s| s.features).filter(|expected| *expected != width) {
        return Err(Error::new(images.path(), Place::Byte(8), Problem::OtherShape { expected, got: width }));
    }
    let (labels, classes) = read_labels(&mut labels, count, part, options, shape)?;
    let (dense, center) = read_images(&mut images, count, width, part)?;
    let shape = Shape { features: width, labels, index_base: 0 };
    Ok(Examples { shape, total: u64::from(count), center: center.mean(), features: Features::Dense(dense), classes })
}

const fn mismatch(images: u32, labels: u32) -> Problem {
    Problem::CountMismatch { images, labels }
}

/// The number of images and of pixels of each.
fn image_header(images: &mut Source) -> Result<(u32, usize), Error> {
    magic(images, IMAGES, "IDX, three dimensions of bytes: images")?;
    let count = be32(images)?;
    let pixels = u64::from(be32(images)?) * u64::from(be32(images)?);
    if count == 0 || pixels == 0 {
        return Err(Error::new(images.path(), Place::Byte(4), Problem::Empty));
    }
    if u64::from(count) > EXAMPLES_MAX {
        let problem = Problem::Limit { what: "images", got: u64::from(count), limit: EXAMPLES_MAX };
        return Err(Error::new(images.path(), Place::Byte(4), problem));
    }
    match usize::try_from(pixels) {
        Ok(width) if width <= FEATURES_MAX => Ok((count, width)),
        _ => {
            let problem = Problem::Limit { what: "pixels in an image", got: pixels, limit: FEATURES_MAX as u64 };
            Err(Error::new(images.path(), Place::Byte(8), problem))
        }
    }
}

fn read_labels(
    source: &mut Source,
    count: u32,
    part: Partition,
    options: &Options,
    shape: Option<&Shape>,
) -> Result<(Vec<i64>, Vec<u32>), Error> {
    let mut labels = Labels::new(options, shape).map_err(|problem| source.error(problem))?;
    for example in 0..u64::from(count) {
        let at = Place::Byte(source.offset());
        let mut byte = [0];
        source.read_exact(&mut byte)?;
        let seen = labels.see(i64::from(byte[0]), part.owns(example));
        seen.map_err(|problem| Error::new(source.path(), at, problem))?;
    }
    end(source, count)?;
    Ok(labels.finish(true))
}

fn read_images(source: &mut Source, count: u32, width: usize, part: Partition) -> Result<(Dense, Center), Error> {
    let (mut dense, mut center) = (Dense::new(width), Center::new(width));
    let mut pixels = vec![0; width];
    let mut row = vec![0.0; width];
    let mut behind = 0;
    for example in 0..u64::from(count) {
        let (own, centers) = (part.owns(example), Center::wants(example));
        if !own && !centers {
            behind += 1;
            continue;
        }
        source.skip(behind * width as u64)?;
        behind = 0;
        source.read_exact(&mut pixels)?;
        row.iter_mut().zip(&pixels).for_each(|(value, pixel)| *value = f32::from(*pixel) / 255.0);
        if centers {
            center.add(&row);
        }
        if own {
            dense.push(row.iter().copied());
        }
    }
    source.skip(behind * width as u64)?;
    end(source, count)?;
    Ok((dense, center))
}

/// Checks that nothing follows; for a compressed file this checks its checksum too.
fn end(source: &mut Source, announced: u32) -> Result<(), Error> {
    if source.at_end()? { Ok(()) } else { Err(source.error(Problem::TrailingBytes { announced })) }
}

fn magic(source: &mut Source, expected: u32, kind: &'static str) -> Result<(), Error> {
    let got = be32(source)?;
    if got == expected {
        return Ok(());
    }
    Err(Error::new(source.path(), Place::Byte(0), Problem::WrongMagic { expected, got, kind }))
}

fn be32(source: &mut Source) -> Result<u32, Error> {
    let mut bytes = [0; 4];
    source.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}
