//! The pages show the files of `examples/coming-from`.

use crate::files::folder;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The definitions of the examples of one product, by file name.
fn files(product: &Path) -> BTreeMap<String, String> {
    let entries = product.read_dir().expect("a folder of examples");
    let definition = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let text = fs::read_to_string(path).expect("an example");
        (name.expect("UTF-8").to_owned(), text)
    };
    entries
        .map(|entry| definition(&entry.expect("an entry of a folder").path()))
        .collect()
}

/// The definitions that a page shows, by the file name in their first line.
fn shown(page: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(page).expect("a page for each folder of examples");
    let blocks = text.split("```yaml\n# ").skip(1);
    let definition = |block: &str| {
        let (text, _) = block.split_once("```").expect("a fence is closed");
        let (name, text) = text.split_once('\n').expect("a name");
        (name.to_owned(), text.to_owned())
    };
    blocks.map(definition).collect()
}

#[test]
fn the_pages_show_the_files_of_the_examples() {
    let products = folder("examples/coming-from");
    let mut count = 0;
    for product in products.read_dir().expect("a folder of examples") {
        let product = product.expect("an entry of a folder").path();
        let name = product.file_name().and_then(|name| name.to_str());
        let page = format!("docs/manual/coming-from/{}.md", name.expect("UTF-8"));
        assert_eq!(files(&product), shown(&folder(&page)), "{page}");
        count += 1;
    }
    assert!(count > 0, "there are examples");
}
