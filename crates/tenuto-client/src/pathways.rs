//! The places that have a title: pathways of HLS with content steering (RFC 8216bis, 4.4.6.6 and
//! 7), or the base addresses of a DASH manifest. Pure: documents in, addresses out.
//!
//! ```text
//!   master.m3u8 ─ EXT-X-CONTENT-STEERING ─▶ own pathway
//!                  └─ steering manifest ──▶ its clones at other servers, in the order of priority
//!   manifest.mpd ─ BaseURL, BaseURL ──────▶ the first, then the others
//! ```
//!
//! A place is what the addresses of the title begin with there; the rest is the same everywhere.
//! A list says where a viewer goes next, and whether the viewer leaves a place that answers.
//! Pathways that are other variants of the playlist, and not clones at another server, are not
//! followed.

use crate::url::Url;
use serde_json::Value;
use std::time::Duration;

/// The places of a title; none where neither a tag nor a manifest names any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pathways {
    /// The first is that of the manifest.
    places: Vec<Pathway>,
    /// Indexes into `places`, the preferred one first.
    order: Vec<usize>,
    present: usize,
    /// Where the steering manifest is.
    steering: Option<Url>,
    /// The parameter with the present place in requests for the steering manifest.
    asks_by: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Pathway {
    id: String,
    /// What addresses begin with.
    base: String,
}

impl Pathways {
    /// The pathway of a multivariant playlist from `url`, if that has content steering.
    pub(crate) fn of_playlist(url: &Url, playlist: &[u8]) -> Self {
        let text = String::from_utf8_lossy(playlist);
        let steered = text.lines().find_map(|line| line.strip_prefix(TAG)).and_then(|attributes| {
            let steering = url.join(attribute(attributes, "SERVER-URI")?).ok()?;
            let base = url.join("/").ok()?.to_string();
            // Without a name the pathway is `.`.
            let id = attribute(attributes, "PATHWAY-ID").unwrap_or(".").to_owned();
            Some(Self {
                places: vec![Pathway { id, base }],
                order: vec![0],
                present: 0,
                steering: Some(steering),
                asks_by: Some(HLS),
            })
        });
        steered.unwrap_or_default()
    }

    /// The places of a manifest of DASH with these base addresses, by their names.
    pub(crate) fn of_bases(bases: &[(String, Url)], steering: Option<Url>) -> Self {
        let place = |(id, base): &(String, Url)| Pathway { id: id.clone(), base: base.to_string() };
        let places: Vec<Pathway> = bases.iter().take(MOST_PLACES).map(place).collect();
        let order = (0..places.len()).collect();
        Self { order, places, present: 0, steering, asks_by: Some(DASH) }
    }

    /// The address of the steering manifest, for a viewer of the present place.
    pub(crate) fn steering(&self) -> Option<Url> {
        let id = &self.places.get(self.present)?.id;
        Some(self.steering.clone()?.with_query(&format!("{}={id}", self.asks_by?)))
    }

    /// Takes a steering manifest; returns after what time it is to be fetched again. One that
    /// cannot be read changes nothing.
    pub(crate) fn steer(&mut self, manifest: &[u8]) -> Option<Duration> {
        let list: Value = serde_json::from_slice(manifest).ok()?;
        let priority = list["PATHWAY-PRIORITY"].as_array()?;
        if list["VERSION"] != 1 {
            return None;
        }
        for clone in list["PATHWAY-CLONES"].as_array().into_iter().flatten() {
            self.add_clone(clone);
        }
        if let Some(reload) = list["RELOAD-URI"].as_str() {
            self.steering = self.steering.as_ref().and_then(|url| url.join(reload).ok());
        }
        let known = |id: &Value| self.places.iter().position(|place| *id == place.id);
        let order: Vec<usize> = priority.iter().filter_map(known).take(MOST_PLACES).collect();
        if !order.is_empty() {
            self.order = order;
        }
        Some(Duration::from_secs(list["TTL"].as_u64().unwrap_or(ASK_AGAIN.as_secs())))
    }

    fn add_clone(&mut self, clone: &Value) -> Option<()> {
        let id = clone["ID"].as_str()?;
        let of = self.places.iter().find(|place| clone["BASE-ID"] == place.id)?;
        let replaced = &clone["URI-REPLACEMENT"];
        let base = match replaced["HOST"].as_str() {
            Some(host) => Url::parse(&of.base).ok()?.join(&format!("//{host}/")).ok()?,
            // Addresses one by one: those of a server begin alike.
            None => {
                let mut addresses = replaced["PER-VARIANT-URIS"].as_object()?.values();
                Url::parse(addresses.next()?.as_str()?).ok()?.join("/").ok()?
            }
        };
        let base = base.to_string();
        match self.places.iter().position(|place| place.id == id) {
            // The first is that of the manifest, and no clone.
            Some(0) => {}
            Some(known) => self.places[known].base = base,
            None if self.places.len() < MOST_PLACES => {
                self.places.push(Pathway { id: id.to_owned(), base });
            }
            None => {}
        }
        Some(())
    }

    /// The place that an address leads to.
    pub(crate) fn place_of(&self, url: &Url) -> Option<usize> {
        let text = url.to_string();
        let places = self.places.iter().enumerate();
        let here = places.filter(|(_, place)| text.starts_with(&place.base));
        here.max_by_key(|(_, place)| place.base.len()).map(|(number, _)| number)
    }

    /// The address at the present place.
    pub(crate) fn at_present(&self, url: &Url) -> Url {
        let moved = self.place_of(url).filter(|place| *place != self.present).and_then(|place| {
            let text = url.to_string();
            let rest = &text[self.places[place].base.len()..];
            Url::parse(&format!("{}{rest}", self.places[self.present].base)).ok()
        });
        moved.unwrap_or_else(|| url.clone())
    }

    /// Where a request goes on that failed at the places `tried`: the present one if that is none
    /// of them, then by priority.
    pub(crate) fn next(&self, tried: &[usize]) -> Option<usize> {
        let mut places = std::iter::once(self.present).chain(self.order.iter().copied());
        places.find(|place| !tried.contains(place))
    }

    /// Whether requests go to this place.
    pub(crate) fn is_present(&self, place: usize) -> bool {
        self.present == place
    }

    /// Whether a media playlist from `url` is that of another pathway: its segments may have other
    /// addresses here. The addresses of a DASH manifest are the same everywhere.
    pub(crate) fn is_of_another(&self, url: &Url) -> bool {
        self.asks_by == Some(HLS) && self.place_of(url).is_some_and(|place| place != self.present)
    }

    /// The place that a list puts in front of the present one.
    pub(crate) fn preferred(&self) -> Option<usize> {
        self.order.first().copied().filter(|place| *place != self.present)
    }

    /// Sends all requests to this place from now on.
    pub(crate) fn go_to(&mut self, place: usize) {
        self.present = place;
    }
}

/// The value of an attribute in a list of a playlist's tag.
fn attribute<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = list;
    loop {
        let (key, value) = rest.split_once('=')?;
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(',').unwrap_or(value.len())),
        };
        if key.trim() == name {
            return Some(value);
        }
        rest = after.strip_prefix(',')?;
    }
}

/// The parameter of HLS (RFC 8216bis, 7.1).
const HLS: &str = "_HLS_pathway";
/// The parameter of DASH (ETSI TS 103 998).
const DASH: &str = "_DASH_pathway";

const TAG: &str = "#EXT-X-CONTENT-STEERING:";

/// The time until a steering manifest that says nothing of it is asked for again (RFC 8216bis,
/// 7.1).
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(300);

/// The largest number of places of a title.
const MOST_PLACES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn steered() -> Pathways {
        let playlist = "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"http://d/steer/film?node=n1\",\
            PATHWAY-ID=\"n1\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID=\"n1\"\n0.m3u8?s=T\n";
        Pathways::of_playlist(&url("http://a:80/t/film/master.m3u8?s=T"), playlist.as_bytes())
    }

    const LIST: &str = r#"{"VERSION": 1, "TTL": 30, "PATHWAY-PRIORITY": ["n1", "n3", "n2"],
        "PATHWAY-CLONES": [{"BASE-ID": "n1", "ID": "n2", "URI-REPLACEMENT": {"HOST": "b:8080"}},
                           {"BASE-ID": "n1", "ID": "n3", "URI-REPLACEMENT":
                            {"PER-VARIANT-URIS": {"0": "http://c/t/film/0.m3u8?s=T&ticket=x"}}}]}"#;

    #[test]
    fn a_request_goes_on_at_each_pathway_once_by_priority() {
        let mut pathways = steered();
        let address = url("http://a/t/film/0/7.m4s?s=T&ticket=x");
        let at = |pathways: &Pathways| pathways.at_present(&address).to_string();
        assert_eq!((pathways.next(&[0]), at(&pathways)), (None, address.to_string()));
        assert_eq!(pathways.steer(LIST.as_bytes()), Some(Duration::from_secs(30)));
        assert_eq!(pathways.preferred(), None);
        let (mut tried, mut seen) = (Vec::new(), Vec::new());
        while let Some(place) = pathways.next(&tried) {
            pathways.go_to(place);
            seen.push(at(&pathways));
            assert_eq!(pathways.place_of(&url(&at(&pathways))), Some(place));
            tried.push(place);
        }
        let wanted =
            ["a", "c", "b:8080"].map(|host| format!("http://{host}/t/film/0/7.m4s?s=T&ticket=x"));
        assert_eq!(seen, wanted);
        let asked = pathways.steering().unwrap().to_string();
        assert_eq!(asked, "http://d/steer/film?node=n1&_HLS_pathway=n2");
        assert_eq!(pathways.preferred(), Some(0));
    }

    #[test]
    fn a_list_that_cannot_be_read_changes_nothing() {
        let mut pathways = steered();
        pathways.steer(LIST.as_bytes()).unwrap();
        for bad in ["", "{}", "[]", r#"{"VERSION": 2, "PATHWAY-PRIORITY": ["n1"]}"#] {
            assert_eq!(pathways.steer(bad.as_bytes()), None, "{bad}");
        }
        // Nobody is left without a place.
        let unknown = br#"{"VERSION": 1, "PATHWAY-PRIORITY": ["n9"]}"#;
        assert_eq!(pathways.steer(unknown), Some(ASK_AGAIN));
        assert_eq!(pathways.next(&[0]), Some(2));
    }

    #[test]
    fn base_addresses_are_places_in_their_order() {
        let bases = [("n1", "http://a/t/film/"), ("n2", "http://b:8080/x/t/film/")];
        let bases = bases.map(|(name, base)| (name.to_owned(), url(base)));
        let mut pathways = Pathways::of_bases(&bases, None);
        let address = url("http://a/t/film/0/7.m4s");
        assert_eq!(pathways.next(&[0]), Some(1));
        pathways.go_to(1);
        assert_eq!(pathways.at_present(&address).to_string(), "http://b:8080/x/t/film/0/7.m4s");
        assert_eq!(pathways.next(&[1]), Some(0), "back, each once");
        assert_eq!(pathways.steering(), None);
        let elsewhere = url("http://cdn/7.m4s");
        assert_eq!(pathways.at_present(&elsewhere), elsewhere);
        assert!(Pathways::default().place_of(&address).is_none());
        // With content steering, in another one.
        let mut steered = Pathways::of_bases(&bases, Some(url("http://d/steer/film?node=n1")));
        assert_eq!(steered.preferred(), None);
        let asked = steered.steering().unwrap().to_string();
        assert_eq!(asked, "http://d/steer/film?node=n1&_DASH_pathway=n1");
        let list = br#"{"VERSION": 1, "TTL": 30, "PATHWAY-PRIORITY": ["n2", "n1"]}"#;
        assert_eq!(steered.steer(list), Some(Duration::from_secs(30)));
        assert_eq!(steered.preferred(), Some(1));
        assert!(!steered.is_of_another(&address), "DASH has no playlists of a place");
    }

    #[test]
    fn attributes_are_found_in_any_order() {
        let list = r#"X=1,PATHWAY-ID="a,b=c",SERVER-URI="/s?x=1,y""#;
        assert_eq!(attribute(list, "SERVER-URI"), Some("/s?x=1,y"));
        assert_eq!(attribute(list, "PATHWAY-ID"), Some("a,b=c"));
        assert_eq!(attribute(list, "X"), Some("1"));
        assert_eq!(attribute(list, "Y"), None);
    }
}
