//! The page in a headless browser: its layout at three widths, what its script does, and its print.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::rendered;

/// A headless browser with its profile in `folder`, which asks the network for nothing by itself; a
/// machine without one skips the test, and says so.
fn browser(folder: &Path) -> Option<Command> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|b| Command::new(b).arg("--version").output().is_ok_and(|o| o.status.success()));
    let Some(found) = found else {
        println!("skipped: no headless browser here");
        return None;
    };
    let mut command = Command::new(found);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()));
    Some(command)
}

/// Whoever prints the page gets all of it, folded parts included.
#[test]
fn the_page_prints() {
    let (folder, page) = rendered();
    let Some(mut browser) = browser(folder.path()) else { return };
    let pdf = folder.path().join("report.pdf");
    let output = browser
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let pdf = fs::read(&pdf).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(pdf.starts_with(b"%PDF-"), "{said}");
    let count = |word: &[u8]| pdf.windows(word.len()).filter(|bytes| *bytes == word).count();
    let pages = count(b"/Type /Page") - count(b"/Type /Pages");
    assert!(pages >= 10, "{pages} pages");
}

/// Lays the page out in a headless browser, as wide as a phone, and lets it measure itself.
#[test]
fn a_phone_shows_the_page_without_sideways_scrolling() {
    let (folder, page) = rendered();
    let Some(mut browser) = browser(folder.path()) else { return };
    // The copy that measures has a second script.
    let probe = "<script>addEventListener('load', () => {\
        document.querySelectorAll('details').forEach(d => d.open = true);\
        const wide = document.documentElement.scrollWidth;\
        const asked = performance.getEntriesByType('resource').map(e => e.name)\
            .filter(n => !n.startsWith('data:'));\
        parent.postMessage('width=' + wide + ' of ' + innerWidth\
            + ' requests=' + asked.length + ' ' + asked.join(' '), '*');\
        });</script></body>";
    let html = fs::read_to_string(page).unwrap().replace("</body>", probe);
    let copy = folder.path().join("probe.html");
    fs::write(&copy, html).unwrap();
    // Headless windows are never narrower than 500 px; a frame is.
    let frame = folder.path().join("frame.html");
    fs::write(
        &frame,
        "<!DOCTYPE html><body><script>\
         addEventListener('message', e => { document.body.textContent = e.data; });\
         </script><iframe src='probe.html' style='width:400px;height:800px;border:0'></iframe></body>",
    )
    .unwrap();
    let output = browser
        .args(["--virtual-time-budget=20000", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.contains("width=400 of 400 requests=0"),
        "{dom}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What the probe asks of a page of some width, all details open: texts that leave their panel, panels of
/// the first figure below the first screen, sideways scrolling.
const LAYOUT: &str = "\
    document.querySelectorAll('details').forEach(d => d.open = true);\
    const cut = [...document.querySelectorAll('.panel')].flatMap(panel => {\
        const box = panel.getBoundingClientRect();\
        return [...panel.querySelectorAll('text')].filter(t => {\
            const b = t.getBoundingClientRect();\
            return b.left < box.left - 3 || b.right > box.right + 3;\
        }).map(t => t.textContent);\
    });\
    const first = document.querySelector('#figure-overview').getBoundingClientRect();\
    const panels = [...document.querySelectorAll('#figure-overview .panel')];\
    const rows = new Set(panels.map(p => Math.round(p.getBoundingClientRect().top))).size;\
    say({ cut: cut.length, which: cut.slice(0, 5), panels: panels.length, rows,\
        ends: first.bottom < innerHeight, sideways: document.documentElement.scrollWidth > innerWidth });";

/// What the page's script does: what hovering shows, sorting, filtering, the switch, the address.
const BEHAVIOUR: &str = "\
    const mark = document.querySelector('#figure-overview .panel use.mark');\
    const at = mark.getBoundingClientRect();\
    mark.dispatchEvent(new PointerEvent('pointermove', { bubbles: true,\
        clientX: at.x + at.width / 2, clientY: at.y + at.height / 2 }));\
    const tip = document.querySelector('.tip');\
    const hovered = tip.hidden ? '' : tip.textContent;\
    const table = document.querySelector('#table-matrices table');\
    const column = c => [...table.tBodies[0].rows].map(r => r.cells[c].textContent);\
    table.tHead.rows[0].cells[3].querySelector('button').click();\
    const down = column(3)[0];\
    table.tHead.rows[0].cells[3].querySelector('button').click();\
    const up = column(3)[0];\
    const filter = document.querySelector('#table-matrices').previousElementSibling.firstChild;\
    filter.value = table.tBodies[0].rows[0].cells[0].textContent;\
    filter.dispatchEvent(new Event('input'));\
    const left = [...table.tBodies[0].rows].filter(r => !r.hidden).length;\
    const page = document.querySelector('details[id^=matrix-]');\
    const gpu = document.querySelector('main section[data-b=gpu]');\
    const before = getComputedStyle(gpu).display;\
    const closed = page.open;\
    location.hash = '#' + encodeURIComponent(page.id) + '?backend=cpu';\
    setTimeout(() => say({ hovered, down, up, left, before, closed, opened: page.open,\
        after: getComputedStyle(gpu).display }), 100);";

/// Runs a script in the page, in a frame of some width, and returns what it says, as JSON; what the frame
/// shows is in a picture below the folder of Cargo's temporary files.
fn probed(width: u32, script: &str, picture: Option<&str>) -> Option<serde_json::Value> {
    let (folder, page) = rendered();
    browser(folder.path())?;
    let probe = format!(
        "<script>addEventListener('load', () => {{ const say = what => parent.postMessage('answer:' + \
         btoa(unescape(encodeURIComponent(JSON.stringify(what)))) + ' ', '*'); {script} }});</script></body>"
    );
    let html = fs::read_to_string(&page).unwrap();
    fs::write(folder.path().join("probe.html"), html.replace("</body>", &probe)).unwrap();
    // Headless windows are never narrower than 500 px; a frame is.
    let frame = |file: &str| {
        format!(
            "<!DOCTYPE html><body style='margin:0'><script>addEventListener('message', e => {{ \
             document.body.dataset.said = e.data; }});</script><iframe src='{file}' \
             style='width:{width}px;height:1000px;border:0'></iframe></body>"
        )
    };
    let path = folder.path().join("frame.html");
    fs::write(&path, frame("probe.html")).unwrap();
    let output = browser(folder.path())?
        .args(["--virtual-time-budget=20000", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--window-size={},1000", width.max(500)))
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let said = dom.split("answer:").nth(1).and_then(|rest| rest.split(' ').next());
    let said = said.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    if let Some(picture) = picture {
        fs::write(&path, frame("report.html")).unwrap();
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(picture);
        let output = browser(folder.path())?
            .args(["--virtual-time-budget=20000", "--hide-scrollbars"])
            .arg(format!("--window-size={},1000", width.max(500)))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}", path.display()))
            .output()
            .unwrap();
        let png = fs::read(&picture)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        // A page of one colour takes a tenth of this.
        assert!(png.starts_with(b"\x89PNG") && png.len() > 30_000, "{} bytes", png.len());
        println!("{}", picture.display());
    }
    let text = base64(said);
    Some(serde_json::from_slice(&text).unwrap())
}

/// Decodes base64.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |c| DIGITS.iter().position(|digit| *digit == c).expect("base64") as u32;
    let digits: Vec<u32> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let word = four.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - four.len()));
        word.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

/// The pictures are looked at before a change of the page is called done (docs/testing.md).
#[test]
fn the_page_is_laid_out_at_three_widths() {
    for (width, rows) in [(400, 3), (1100, 2), (1700, 1)] {
        let picture = format!("report-{width}.png");
        let Some(said) = probed(width, LAYOUT, Some(&picture)) else { return };
        assert_eq!(said["cut"], 0, "labels leave their panels at {width}: {said}");
        assert_eq!(said["panels"], 3, "{width}: {said}");
        assert!(said["rows"].as_u64() <= Some(rows), "{width}: {said}");
        assert_eq!(said["sideways"], false, "{width}: {said}");
        assert_eq!(said["ends"], width > 1000, "{width}: {said}");
    }
}

#[test]
fn hovering_sorting_filtering_and_addresses_work() {
    let Some(said) = probed(1300, BEHAVIOUR, None) else { return };
    let hovered = said["hovered"].as_str().unwrap();
    for part in ["cpu ", "GFLOPS", "× serial"] {
        assert!(hovered.contains(part), "{part}: {said}");
    }
    let number = |name: &str| {
        let digits = said[name].as_str().unwrap().replace('\u{202f}', "");
        digits.parse::<u64>().unwrap_or_else(|_| panic!("{said}"))
    };
    assert!(number("down") > number("up"), "{said}");
    assert_eq!(said["left"], 1, "{said}");
    assert_eq!((&said["closed"], &said["opened"]), (&false.into(), &true.into()), "{said}");
    assert_eq!((&said["before"], &said["after"]), (&"block".into(), &"none".into()), "{said}");
}
