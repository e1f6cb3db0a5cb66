//! The types that the helpers are published with: what a type checker of each language makes of a program that uses
//! them, rightly and wrongly, and whether Python's are those of the module.

use holdfast_tests::{Ran, Site};

use crate::clients::{NODE_FRAMEWORKS, PYTHON_FRAMEWORKS, helper};

const TYPESCRIPT: &[&str] = &[
    "node_modules/typescript/bin/tsc",
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom,dom.iterable",
    "typed.mts",
];

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_python_have_types_of_the_helper() {
    let site = Site::empty();
    PYTHON_FRAMEWORKS.put_beside(&site, "typed");
    // Strictly: an error that is expected and does not come is one.
    for tool in [&["-m", "mypy", "--strict", "typed.py"][..], &["-m", "mypy.stubtest", "holdfast"]]
    {
        let mut command = PYTHON_FRAMEWORKS.tool(&site, tool);
        let said = Ran::of(command.env("MYPYPATH", helper("python"))).ok();
        assert!(said.starts_with("Success"), "{said}");
    }
}

#[test]
#[ignore = "takes minutes: cargo xtask clients"]
fn clients_node_have_types_of_the_helper() {
    let site = Site::empty();
    site.write("typed.mts", include_str!("../../clients/frameworks/typed.mts"));
    assert_eq!(Ran::of(&mut NODE_FRAMEWORKS.tool(&site, TYPESCRIPT)).ok(), "");
}
