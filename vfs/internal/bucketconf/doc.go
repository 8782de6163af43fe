// Package bucketconf changes what is kept of a bucket beside its entries: attributes,
// configuration, ownership controls and the policy. All of it is one record (key 'b'),
// but for the text of the policy ('P'); what the judge must know without reading
// that stands in the bucket's inode, and in its entry, and changes in the same
// transaction. Who may do it has been asked before.
package bucketconf
