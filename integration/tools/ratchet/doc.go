// Command ratchet keeps the files of a package in layers, files and functions
// short, and calls readable. It prints for each package
//
//	group       how many files the largest group has whose members all reach one
//	            another: each uses, by way of others, what each other declares
//	file        lines of the longest file
//	function    lines of the longest function, its body included
//	parameters  most parameters of a function, the receiver aside
//
// and compares them with maxima.txt, which holds the figures of the day when
// they were lowest. A figure that grew fails; for a group the message names the
// arrows that are new since maxima.txt was changed last. One that shrank asks
// for ratchet -lower, which writes it down. Raising a figure is done by hand, in
// a commit that says why.
//
// An arrow leads from file A to file B if A names something that B declares at
// package level, or a method or a field of what B declares. Tests are left out.
//
//	packages ─ load ─→ arrows, sizes ─→ groups (strongly connected) ─→ figures ─┬─ maxima.txt
//	                                                                            └─ grown: arrows at the
//	                                                                               commit of maxima.txt
package main
