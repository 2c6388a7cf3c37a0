//! Structs that are read from objects alone.

/// Reads (and, with `+ Serialize`, writes) a struct from a map alone. What serde derives takes a list of the members' values for a struct too,
/// which no description of ours says, and which means something else as soon as a member is added in the middle.
///
/// The struct derives its traits with `#[serde(remote = "Self")]`, which leaves them to this macro.
#[macro_export]
macro_rules! only_as_object {
    ($name:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                struct Members;

                impl<'de> ::serde::de::Visitor<'de> for Members {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: ::serde::de::MapAccess<'de>>(
                        self,
                        map: A,
                    ) -> ::core::result::Result<$name, A::Error> {
                        $name::deserialize(::serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_map(Members)
            }
        }
    };
    ($name:ident + Serialize) => {
        $crate::only_as_object!($name);

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(remote = "Self", deny_unknown_fields)]
    struct Pair {
        one: u8,
        other: Option<u8>,
    }
    only_as_object!(Pair + Serialize);

    #[test]
    fn an_object_is_read_and_written_and_a_list_of_its_values_is_none() {
        let pair = Pair { one: 1, other: None };
        assert_eq!(serde_json::to_string(&pair).unwrap(), r#"{"one":1,"other":null}"#);
        assert_eq!(serde_json::from_str::<Pair>(r#"{"one":1}"#).unwrap(), pair);
        for text in ["[1,null]", "[1]", r#"{"one":1,"two":2}"#, "{}", "null"] {
            assert!(serde_json::from_str::<Pair>(text).is_err(), "{text}");
        }
    }
}
