//! Good files, bad files, and files of any bytes.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use petuum_types::WorkerId;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn files(&self, options: &Options) -> Files {
        Files::find(self.0.path(), options).unwrap()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `count` images of 2 x 3 pixels, image i all of value i, and labels i mod 3.
fn idx(count: u8) -> (Vec<u8>, Vec<u8>) {
    let header = |magic: u32, numbers: &[u32]| -> Vec<u8> {
        std::iter::once(magic).chain(numbers.iter().copied()).flat_map(u32::to_be_bytes).collect()
    };
    let (mut images, mut labels) = (header(0x0803, &[u32::from(count), 2, 3]), header(0x0801, &[u32::from(count)]));
    images.extend((0..count).flat_map(|i| [i; 6]));
    labels.extend((0..count).map(|i| i % 3));
    (images, labels)
}

fn idx_folder(images: &[u8], labels: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.put("train-images-idx3-ubyte", images);
    folder.put("train-labels-idx1-ubyte", labels);
    folder
}

fn dense(examples: &Examples) -> Vec<Vec<f32>> {
    let Features::Dense(dense) = examples.features() else { panic!("dense expected") };
    (0..examples.len()).map(|i| dense.row(i).to_vec()).collect()
}

fn sparse(examples: &Examples) -> Vec<Vec<(u32, f32)>> {
    let Features::Sparse(sparse) = examples.features() else { panic!("sparse expected") };
    let row = |i| {
        let (columns, values) = sparse.row(i);
        columns.iter().copied().zip(values.iter().copied()).collect()
    };
    (0..examples.len()).map(row).collect()
}

fn text(name: &str, content: impl AsRef<[u8]>, part: Partition, options: &Options) -> Result<Examples, Error> {
    let folder = Folder::new();
    let path = folder.put(name, content);
    Files::find(&path, options).unwrap().train(part, options)
}

fn message(result: Result<Examples, Error>) -> String {
    let error = result.unwrap_err();
    error.to_string().replace(&error.path.display().to_string(), "FILE")
}

#[test]
fn idx_parts_are_the_right_rows_plain_and_compressed() {
    let (images, labels) = idx(11);
    for compressed in [false, true] {
        let folder = Folder::new();
        let pack = |bytes: &[u8]| if compressed { gzip(bytes) } else { bytes.to_vec() };
        let end = if compressed { ".gz" } else { "" };
        for stem in ["train", "t10k"] {
            folder.put(&format!("{stem}-images-idx3-ubyte{end}"), pack(&images));
            folder.put(&format!("{stem}-labels-idx1-ubyte{end}"), pack(&labels));
        }
        let options = Options::default();
        let part = folder.files(&options).train(Partition::of(WorkerId(1), 4), &options).unwrap();
        assert_eq!(part.classes(), [1, 2, 0]);
        assert_eq!(dense(&part), [1, 5, 9].map(|i: u8| vec![f32::from(i) / 255.0; 6]));
        assert_eq!((part.total, part.shape.features, part.shape.labels.as_slice()), (11, 6, [0, 1, 2].as_slice()));
        assert_eq!(folder.files(&options).shape(&options).unwrap(), part.shape);
        let test = folder.files(&options).test(Partition::WHOLE, &options, &part.shape).unwrap().unwrap();
        assert_eq!(test.len(), 11);
    }
}

#[test]
fn dense_rows_end_with_the_bias_and_zeros() {
    let mut rows = Dense::new(2);
    rows.push([5.0, 6.0]);
    rows.push([7.0, 8.0]);
    assert_eq!(
        (rows.stride(), rows.padded(1), rows.row(1)),
        (4, [7.0, 8.0, 1.0, 0.0].as_slice(), [7.0, 8.0].as_slice())
    );
}

#[test]
fn damaged_idx_files_are_named_with_place_expected_and_got() {
    let (images, labels) = idx(5);
    let options = Options::default();
    let attempt = |images: &[u8], labels: &[u8], options: &Options| {
        message(idx_folder(images, labels).files(options).train(Partition::of(WorkerId(0), 2), options))
    };
    let cut = attempt(&images[..images.len() - 1], &labels, &options);
    assert_eq!(cut, "FILE, byte 45: ends too early: expected 1 bytes from here, got 0");
    assert_eq!(
        attempt(&images[..3], &labels, &options),
        "FILE, byte 3: ends too early: expected 1 bytes from here, got 0"
    );
    assert_eq!(attempt(&[], &labels, &options), "FILE, byte 0: ends too early: expected 4 bytes from here, got 0");
    let swapped = attempt(&labels, &images, &options);
    assert_eq!(
        swapped,
        "FILE, byte 0: starts with 0x00000801; expected 0x00000803 (IDX, three dimensions of bytes: images)"
    );
    let other = attempt(&images, &idx(6).1, &options);
    assert_eq!(other, "FILE, byte 4: has 6 labels for the 5 images beside it; expected one each");
    let longer = attempt(&[images.as_slice(), &[0]].concat(), &labels, &options);
    assert_eq!(longer, "FILE, byte 46: goes on after the 5 items that its header announces");
    let two = Options { classes: Some(2), ..options.clone() };
    assert_eq!(attempt(&images, &labels, &two), "FILE, byte 10: label 2; expected 0 to 1");
    let empty = attempt(&idx(0).0, &idx(0).1, &options);
    assert_eq!(empty, "FILE, byte 4: has no examples; expected at least one");
}

#[test]
fn sizes_in_headers_are_not_believed() {
    let (mut images, mut labels) = idx(5);
    images[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    labels[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    let options = Options::default();
    let error = message(idx_folder(&images, &labels).files(&options).train(Partition::WHOLE, &options));
    assert_eq!(error, "FILE, byte 13: ends too early: expected 1 bytes from here, got 0");
    images[8..16].copy_from_slice(&[0xff; 8]);
    let error = message(idx_folder(&images, &labels).files(&options).train(Partition::WHOLE, &options));
    assert!(error.contains("pixels in an image; the limit is 999999"), "{error}");
}

#[test]
fn a_damaged_gzip_file_is_noticed_even_in_skipped_rows() {
    let (images, labels) = idx(200);
    let mut packed = gzip(&images);
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    let options = Options::default();
    let error = idx_folder(&packed, &labels).files(&options).train(Partition::NONE, &options).unwrap_err();
    assert!(matches!(error.problem, Problem::Io(_)), "{error}");
}

#[test]
fn libsvm_understands_comments_blanks_crlf_and_both_bases() {
    let content = "# heading\r\n+1 1:0.5 3:2 # note\r\n\r\n-1\t2:1e-1  \n1\n-1.0 4:1";
    let part = text("a", content, Partition::WHOLE, &Options::default()).unwrap();
    assert_eq!((part.shape.labels.as_slice(), part.shape.features, part.shape.index_base), ([-1, 1].as_slice(), 4, 1));
    assert_eq!(part.classes(), [1, 0, 1, 0]);
    assert_eq!(sparse(&part), [vec![(0, 0.5), (2, 2.0)], vec![(1, 0.1)], vec![], vec![(3, 1.0)]]);
    let zero = text("a", "3 0:1 2:4\n5 1:1\n", Partition::of(WorkerId(1), 2), &Options::default()).unwrap();
    assert_eq!((zero.shape.features, zero.shape.index_base, zero.classes()), (3, 0, [1].as_slice()));
    assert_eq!(sparse(&zero), [[(1, 1.0)]]);
    let scaled = Options { scale: 0.5, features: Some(9), ..Options::default() };
    let scaled = text("a", "1 1:3", Partition::WHOLE, &scaled).unwrap();
    assert_eq!((sparse(&scaled), scaled.shape.features), (vec![vec![(0, 1.5)]], 9));
}

#[test]
fn a_test_set_has_the_shape_of_the_training_set() {
    let folder = Folder::new();
    folder.put("train.libsvm", "1 1:1 3:1\n2 2:1\n");
    folder.put("test.libsvm", "2 2:7 9:1\n");
    let options = Options::default();
    let shape = folder.files(&options).shape(&options).unwrap();
    let test = folder.files(&options).test(Partition::WHOLE, &options, &shape).unwrap().unwrap();
    assert_eq!((sparse(&test), &test.shape), (vec![vec![(1, 7.0)]], &shape));
    let other = folder.put("other", "3 1:1\n");
    let files = folder.files(&options).with_test(&other, &options).unwrap();
    let error = files.test(Partition::WHOLE, &options, &shape).map(Option::unwrap);
    assert_eq!(message(error), "FILE, line 1: label 3; expected 1 to 2");
    let csv = folder.put("other.csv", "1,2,1\n");
    let files = folder.files(&options).with_test(&csv, &options).unwrap();
    let error = files.test(Partition::WHOLE, &options, &shape).map(Option::unwrap);
    assert_eq!(message(error), "FILE, line 1: examples have 2 features; expected 3 as in training");
}

#[test]
fn bad_libsvm_lines_are_named() {
    let own = |content: &str| message(text("a", content, Partition::WHOLE, &Options::default()));
    assert_eq!(own("1 1:1\nx 1:1"), "FILE, line 2: got \"x\"; expected a label that is a whole number");
    assert_eq!(own("1.5 1:1"), "FILE, line 1: got \"1.5\"; expected a label that is a whole number");
    assert_eq!(own("1 1:1 qid"), "FILE, line 1: got \"qid\"; expected index:value");
    assert_eq!(own("1 1:nan"), "FILE, line 1: got \"nan\"; expected a number that is finite, also after scaling");
    let order = "(indices start at the base and ascend within a line)";
    assert_eq!(own("1 2:1 2:1"), format!("FILE, line 1: feature index 2; expected at least 3 {order}"));
    assert_eq!(own("1 1000000:1"), "FILE, line 1: 1000000 as a feature index; the limit is 999999");
    assert_eq!(own("# nothing\n\n"), "FILE: has no examples; expected at least one");
    let one = Options { index_base: Some(1), ..Options::default() };
    let error = message(text("a", "1 0:1", Partition::WHOLE, &one));
    assert_eq!(error, format!("FILE, line 1: feature index 0; expected at least 1 {order}"));
    let skipped = message(text("a", "1 1:1\n2 3:1 zz", Partition::of(WorkerId(0), 2), &Options::default()));
    assert_eq!(skipped, "FILE, line 2: got \"zz\"; expected index:value");
    let few = Options { features: Some(2), ..Options::default() };
    assert_eq!(message(text("a", "1 3:1", Partition::WHOLE, &few)), "FILE: 3 features; the limit is 2");
}

#[test]
fn csv_finds_headings_and_label_columns() {
    let options = Options::default();
    let with = |label: &str| Options { label_column: label.parse().unwrap(), ..Options::default() };
    let all = Partition::WHOLE;
    let last = text("a.csv", "1,2,7\r\n\r\n# note\r\n 3 ,\"4\",8\r\n", all, &options).unwrap();
    assert_eq!(
        (dense(&last), last.classes(), last.shape.labels.as_slice()),
        (vec![vec![1.0, 2.0], vec![3.0, 4.0]], [0, 1].as_slice(), [7, 8].as_slice())
    );
    let headed = "\u{feff}\"a, \"\"quoted\"\"\",Label,b\n1,7,2\n3,8,4\n";
    assert_eq!(dense(&text("a.csv", headed, all, &options).unwrap()), dense(&last));
    assert_eq!(dense(&text("a.csv", headed, all, &with("1")).unwrap()), dense(&last));
    assert_eq!(dense(&text("a.csv", headed, all, &with("b")).unwrap()), [[1.0, 7.0], [3.0, 8.0]]);
    assert_eq!(dense(&text("a.csv", headed, all, &with("last")).unwrap()), [[1.0, 7.0], [3.0, 8.0]]);
    assert_eq!(text("a.csv", headed, all, &with("first")).unwrap().shape.labels, [1, 3]);
    let packed = text("a.csv.gz", gzip(headed.as_bytes()), Partition::of(WorkerId(1), 2), &options).unwrap();
    assert_eq!((dense(&packed), packed.total), (vec![vec![3.0, 4.0]], 2));
}

#[test]
fn bad_csv_records_are_named() {
    let with = |options: &Options, content: &str| message(text("a.csv", content, Partition::WHOLE, options));
    let own = |content: &str| with(&Options::default(), content);
    assert_eq!(own("1,2\n1,2,3\n"), "FILE, line 2: has 3 columns; expected 2 as in the records before");
    assert_eq!(own("1,2\n\nx,2\n"), "FILE, line 3: got \"x\"; expected a number that is finite, also after scaling");
    assert_eq!(own("1,2\n,2\n"), "FILE, line 2: got \"\"; expected a number that is finite, also after scaling");
    assert_eq!(own("1,2\n1,x\n"), "FILE, line 2: got \"x\"; expected a label that is a whole number");
    assert_eq!(own("1,2\n1,\"2\n"), "FILE, line 2: got \"\\\"2\"; expected a closing quote");
    assert_eq!(own("1,2\n\"1\"x,2\n"), "FILE, line 2: got \"x,2\"; expected a comma after a closing quote");
    assert_eq!(own("a,b\n"), "FILE: has no examples; expected at least one");
    assert_eq!(own(""), "FILE: has no examples; expected at least one");
    let named = Options { label_column: LabelColumn::Name("y".into()), ..Options::default() };
    assert_eq!(
        with(&named, "a,b\n1,2\n"),
        "FILE, line 1: has no column named \"y\" in its first line; it has 2 columns"
    );
    let far = Options { label_column: LabelColumn::Number(2), ..Options::default() };
    assert_eq!(with(&far, "1,2\n"), "FILE, line 1: has no column 2; it has 2 columns");
}

#[test]
fn lines_and_records_have_a_limit() {
    let long = vec![b'1'; LINE_BYTES_MAX + 10];
    let error = message(text("a", &long, Partition::WHOLE, &Options::default()));
    assert!(error.contains("bytes in one line; the limit is"), "{error}");
    let open = [b"1,\"".as_slice(), &long].concat();
    let error = message(text("a.csv", open, Partition::WHOLE, &Options::default()));
    assert!(error.contains("bytes in one line; the limit is"), "{error}");
}

#[test]
fn a_folder_without_data_says_what_was_looked_for() {
    let folder = Folder::new();
    let error = Files::find(folder.0.path(), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("has no training set; looked for train-images-idx3-ubyte"), "{error}");
    let missing = Files::find(&folder.0.path().join("nothing"), &Options::default()).unwrap();
    let error = missing.train(Partition::WHOLE, &Options::default()).unwrap_err();
    assert!(matches!(error.problem, Problem::Io(_)), "{error}");
}

/// A file's bytes with some changed and the end cut off.
fn damage(mut bytes: Vec<u8>, flips: &[(usize, u8)], keep: usize) -> Vec<u8> {
    for (at, with) in flips {
        let at = at % bytes.len();
        bytes[at] ^= with;
    }
    bytes.truncate(keep % (bytes.len() + 1));
    bytes
}

/// What every reader promises of what it returns.
fn check(examples: &Examples) {
    let classes = examples.shape.classes();
    assert!(examples.classes().iter().all(|class| (*class as usize) < classes));
    assert!(examples.len() as u64 <= examples.total);
    match examples.features() {
        Features::Dense(_) => assert!(dense(examples).iter().flatten().all(|value| value.is_finite())),
        Features::Sparse(_) => {
            let cells = sparse(examples);
            assert!(cells.iter().flatten().all(|(c, v)| (*c as usize) < examples.shape.features && v.is_finite()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_idx_never_panics(
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4), keep: usize, labels: bool, packed: bool,
    ) {
        let (mut images, mut marks) = idx(9);
        if packed {
            (images, marks) = (gzip(&images), gzip(&marks));
        }
        let target = if labels { &mut marks } else { &mut images };
        *target = damage(std::mem::take(target), &flips, keep);
        let options = Options::default();
        if let Ok(examples) = idx_folder(&images, &marks).files(&options).train(Partition::of(WorkerId(1), 2), &options) {
            check(&examples);
        }
    }

    #[test]
    fn damaged_text_never_panics(
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6), keep: usize, csv: bool,
    ) {
        let (name, content) = if csv {
            ("a.csv", "x,\"y\",label\n1,2,3\n-1.5,2e3,4\n# c\n7,8,3\n")
        } else {
            ("a", "1 1:0.5 3:2 # c\n\n-1 2:1\r\n3\n1 0:7 5:1\n")
        };
        let damaged = damage(content.as_bytes().to_vec(), &flips, keep);
        if let Ok(examples) = text(name, damaged, Partition::of(WorkerId(0), 2), &Options::default()) {
            check(&examples);
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..3u8) {
        let name = ["a", "a.csv", "a.svm"][usize::from(kind)];
        if let Ok(examples) = text(name, &bytes, Partition::WHOLE, &Options::default()) {
            check(&examples);
        }
    }

    #[test]
    fn parts_together_are_the_whole(rows in prop::collection::vec((0..4i64, 0..9u8, any::<bool>()), 1..30), workers in 1..5u32) {
        let line = |(label, value, long): &(i64, u8, bool)| {
            if *long { format!("{label} 1:{value} 4:1\n") } else { format!("{label} 2:{value}\n") }
        };
        let content: String = rows.iter().map(line).collect();
        let options = Options::default();
        let whole = text("a", &content, Partition::WHOLE, &options).unwrap();
        for worker in 0..workers {
            let part = text("a", &content, Partition::of(WorkerId(worker), workers), &options).unwrap();
            prop_assert_eq!(&part.shape, &whole.shape);
            prop_assert_eq!(part.total, whole.total);
            let mine = |i: &usize| i % workers as usize == worker as usize;
            let expected: Vec<_> = (0..whole.len()).filter(mine).map(|i| sparse(&whole)[i].clone()).collect();
            prop_assert_eq!(sparse(&part), expected);
        }
    }
}
