//! How the grammar is written down: a class a file, a method a paragraph, its fields in the order of the wire.
//!
//! Decoding, encoding, names and numbers all come from there, so they cannot differ.

/// The methods of a class: number and name of the class; then of each method its number, its name, and its fields.
macro_rules! class {
    ($class:literal $class_name:literal; $(
        $(#[$doc:meta])*
        $id:literal $name:literal $method:ident $(<$life:lifetime>)? { $($field:ident: $type:ty),* $(,)? }
    )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "fields are what the specification says under their names")]
        pub struct $method $(<$life>)? {
            $(pub $field: $type,)*
        }

        impl $(<$life>)? $method $(<$life>)? {
            /// Its numbers.
            pub const ID: $crate::method::MethodId = $crate::method::MethodId { class: $class, method: $id };
            /// Its name, as in logs.
            pub const NAME: &'static str = concat!($class_name, ".", $name);
            /// Its fields.
            pub(super) const FIELDS: &'static [(&'static str, $crate::method::Domain)] =
                &[$((stringify!($field), <$type as $crate::method::field::Typed>::DOMAIN)),*];

            #[inline(always)]
            #[allow(unused_variables, reason = "some methods have no fields")]
            pub(super) fn read<'p $(: $life)?>(
                fields: &mut $crate::method::field::Fields<'p, '_>,
            ) -> Result<Self, $crate::WireError> {
                Ok(Self { $($field: fields.field()?,)* })
            }

            #[inline(always)]
            #[allow(unused_variables, reason = "some methods have no fields")]
            pub(super) fn write(self, out: &mut $crate::method::field::Draft<'_>) {
                $($crate::method::field::Field::write(self.$field, out);)*
            }
        }
    )* };
}

/// One enum of all methods, and what is to be known of each.
macro_rules! methods {
    ($($class:ident: $($variant:ident $method:ident $(<$life:lifetime>)?),*;)*) => {
        /// Any method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is said at its type")]
        pub enum Method<'a> {
            $($($variant($class::$method $(<$life>)?),)*)*
        }

        /// All methods there are, in the order of the specification.
        pub const GRAMMAR: &[Signature] = &[$($(
            Signature { id: $class::$method::ID, name: $class::$method::NAME, fields: $class::$method::FIELDS },
        )*)*];

        impl<'a> Method<'a> {
            fn read(id: MethodId, fields: &mut Fields<'a, '_>) -> Result<Self, WireError> {
                match id {
                    $($($class::$method::ID => $class::$method::read(fields).map(Self::$variant),)*)*
                    _ => Err(WireError::UnknownMethod(id)),
                }
            }

            fn write(self, out: &mut Draft<'_>) {
                match self {
                    $($(Self::$variant(method) => method.write(out),)*)*
                }
            }

            /// Its numbers.
            #[must_use]
            pub fn id(&self) -> MethodId {
                match self {
                    $($(Self::$variant(_) => $class::$method::ID,)*)*
                }
            }

            /// Its name, as in logs: `basic.publish`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_) => $class::$method::NAME,)*)*
                }
            }
        }

        $($(
            impl<'a> From<$class::$method $(<$life>)?> for Method<'a> {
                fn from(method: $class::$method $(<$life>)?) -> Self {
                    Self::$variant(method)
                }
            }
        )*)*
    };
}
