//! The model of this machine with children that are a few lines of shell.

use super::*;

#[test]
fn the_process_reads_as_much_as_the_catalog_says() {
    let data = tempfile::tempdir().unwrap();
    let built_in = Catalog::load(None).unwrap();
    let said = built_in.models["local"].context;
    let own = Catalog::load(Some(&"model.local.context = 5000".parse().unwrap())).unwrap();
    for (catalog, context) in [(built_in, said), (own, 5000)] {
        let local = Local::new(data.path(), &catalog);
        assert_eq!(local.runner.options().context as u64, context);
    }
}
