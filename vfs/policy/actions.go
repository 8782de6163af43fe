package policy

import "strings"

// level is what an action of S3 is about.
type level byte

const (
	onService level = iota
	onBucket
	onObject
)

// s3Actions are the actions of S3 (Service Authorization Reference, "Actions,
// resources, and condition keys for Amazon S3"), those of features that this program
// lacks included, so that documents written for Amazon are accepted.
var s3Actions = map[level]string{
	onService: `ListAllMyBuckets GetAccountPublicAccessBlock PutAccountPublicAccessBlock`,
	onBucket: `CreateBucket DeleteBucket DeleteBucketPolicy DeleteBucketWebsite GetAccelerateConfiguration
		GetAnalyticsConfiguration GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging GetBucketNotification
		GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy GetBucketPolicyStatus
		GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging GetBucketVersioning GetBucketWebsite
		GetEncryptionConfiguration GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration
		GetMetricsConfiguration GetReplicationConfiguration ListBucket ListBucketMultipartUploads ListBucketVersions
		PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification
		PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock
		PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
		PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration
		PutReplicationConfiguration`,
	onObject: `AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion
		DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
		GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl GetObjectVersionAttributes
		GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
		ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold PutObjectRetention
		PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete ReplicateObject ReplicateTags RestoreObject
		UpdateObjectEncryption`,
}

// s3Action is one of them, such as "s3:GetObject".
type s3Action struct {
	name string
	on   level
}

var allActions = func() (list []s3Action) {
	for on, names := range s3Actions {
		for name := range strings.FieldsSeq(names) {
			list = append(list, s3Action{"s3:" + name, on})
		}
	}
	return list
}()

// actionNumbers are the places of S3's actions in allActions, by their names as
// requests have them, and in lower case.
var actionNumbers = func() map[string]int {
	numbers := make(map[string]int, 2*len(allActions))
	for i, a := range allActions {
		numbers[a.name], numbers[strings.ToLower(a.name)] = i, i
	}
	return numbers
}()

// actionSet has a bit for each action of S3's.
type actionSet [3]uint64

func (a *actionSet) add(n int)      { a[n/64] |= 1 << (n % 64) }
func (a *actionSet) has(n int) bool { return a[n/64]&(1<<(n%64)) != 0 }

// others is which of S3's actions are not in the set.
func (a actionSet) others() actionSet {
	for i := range a {
		a[i] = ^a[i]
	}
	return a
}

// addAll adds what a pattern matches.
func (a *actionSet) addAll(p *pattern) {
	if p.fixed() {
		if n, ok := actionNumbers[strings.ToLower(p.head)]; ok {
			a.add(n)
		}
		return
	}
	for i := range allActions {
		if p.match(allActions[i].name, nil) {
			a.add(i)
		}
	}
}

// anyAction reports whether a pattern matches an action on one of certain levels.
func anyAction(a *pattern, on func(level) bool) bool {
	if a.fixed() {
		n, ok := actionNumbers[strings.ToLower(a.head)]
		return ok && on(allActions[n].on)
	}
	for i := range allActions {
		if on(allActions[i].on) && a.match(allActions[i].name, nil) {
			return true
		}
	}
	return false
}

// OnObject reports whether an action of S3's is about an object.
func OnObject(action string) bool {
	n, ok := actionNumbers[strings.ToLower(action)]
	return ok && allActions[n].on == onObject
}
