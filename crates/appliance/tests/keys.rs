//! The table `[page]` of a file.

use penstock_appliance::page::keys::{PageKeys, Settings};

fn read(text: &str) -> Result<Settings, String> {
    let keys: PageKeys = serde_json::from_str(text).unwrap();
    keys.settings().map_err(|e| format!("{}: {}", e.key, e.message))
}

#[test]
fn the_page_is_for_this_machine_unless_it_is_safe() {
    assert_eq!(read("{}").unwrap().listen.to_string(), "127.0.0.1:7080");
    assert!(read(r#"{"listen": "0.0.0.0:443"}"#).unwrap_err().contains("(TLS)"));
    let tls = r#""listen": "0.0.0.0:443", "certificate": "c", "key": "k""#;
    assert!(read(&format!("{{{tls}}}")).unwrap_err().contains("sha256sum"));
    let token = "ab".repeat(32);
    assert_eq!(read(&format!(r#"{{{tls}, "readers": ["{token}"]}}"#)).unwrap().readers, [[0xab; 32]]);
    assert!(read(r#"{"key": "k"}"#).unwrap_err().starts_with("key: "));
    for wrong in ["", "xy", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64)] {
        let refused = read(&format!(r#"{{"operators": ["{wrong}"]}}"#)).unwrap_err();
        assert!(refused.contains("64 hexadecimal"), "{wrong}");
    }
}
