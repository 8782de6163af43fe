// Package posixacl is the access control lists of POSIX (withdrawn 1003.1e draft
// 17) as Linux keeps them in two extended attributes: the codec, the rules about
// their entries, and what chmod and the making of files do with them. What a list
// grants to whom is above, where credentials are known.
package posixacl
