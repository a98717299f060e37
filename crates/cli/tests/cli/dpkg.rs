//! The installed packages of this machine, through a broker that is killed half-way.

#![allow(clippy::print_stdout, reason = "it tells a story, and says why it is skipped")]

use crate::support::dpkg;

#[test]
fn every_package_arrives_in_order_though_the_broker_is_killed() {
    let Ok(status) = std::fs::read_to_string(dpkg::STATUS) else {
        assert!(std::env::var_os("CI").is_none(), "{} must be there in CI", dpkg::STATUS);
        println!("skipped: {} is not there; this machine is no Debian", dpkg::STATUS);
        return;
    };
    let packages = dpkg::packages(&status);
    assert!(!packages.is_empty(), "{} holds packages", dpkg::STATUS);
    let dir = tempfile::tempdir().expect("a directory");
    dpkg::tell(&dir.path().join("data"), &packages, &mut |line| println!("{line}"));
}

#[test]
fn a_status_file_is_paragraphs_of_fields() {
    let status = "Package: b\nPriority: required\nArchitecture: amd64\nVersion: 1:2-3\nDescription: x\n Priority: extra\n\n\
        Package: a\nVersion: 2\n\nNo-Package: here\n\nPackage: c\nPriority: strange\n";
    let seen: Vec<_> =
        dpkg::packages(status).iter().map(|p| format!("{} {} {}", p.id, p.version, p.priority())).collect();
    assert_eq!(seen, ["b:amd64 1:2-3 required", "a:all 2 optional", "c:all ? optional"]);
}
