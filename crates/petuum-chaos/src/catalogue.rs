//! Enumerations whose members have names that commands and reports use.

/// Declares an enumeration whose members carry their name and two facts, and lists them.
macro_rules! catalogue {
    (
        $(#[$of_type:meta])*
        $type:ident($first:ident: $first_type:ty, $second:ident: $second_type:ty) {
            $($member:ident = $name:literal, $first_value:expr, $second_value:literal;)+
        }
    ) => {
        $(#[$of_type])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $(#[doc = $second_value] $member,)+
        }

        impl $type {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$member,)+];

            /// Its name in commands and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)+ }
            }

            /// See the type.
            #[must_use]
            pub const fn $first(self) -> $first_type {
                match self { $(Self::$member => $first_value,)+ }
            }

            /// In one sentence.
            #[must_use]
            pub const fn $second(self) -> $second_type {
                match self { $(Self::$member => $second_value,)+ }
            }

            /// The one of this name.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|member| member.name() == name)
            }
        }

        #[cfg(test)]
        mod names {
            use super::$type;

            #[test]
            fn are_unique_and_found() {
                for member in $type::ALL {
                    assert_eq!($type::by_name(member.name()), Some(*member));
                }
            }
        }
    };
}

pub(crate) use catalogue;
