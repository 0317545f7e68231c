export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' GIT_CONFIG_NOSYSTEM=1
git init -q -b main one
cd one
for n in 1 2 3 4 5 6 7 8; do
    seq "$n" 7 400 > "file$n"
    git add -A
    git commit -q -m "step $n"
done
git checkout -q -b side HEAD~4
sed -i 's/^1/one/' file1 file2
git commit -q -am "words for ones"
git checkout -q main
git merge -q --no-edit side
git log --graph --stat --format='%H %s'
git diff HEAD~3 --word-diff | cksum
git blame file1 | cksum
git rebase -q HEAD~2 2>&1
git tag -a -m "a tag" v1
git gc -q
git fsck --full 2>&1
git rev-list --objects --all | sort | cksum
git archive v1 | sha256sum
cd ..
git clone -q one two 2>&1
git -C two show --stat HEAD
git -C two grep -c one
git -C two stash list
git -C two log --author=nobody
git -C two checkout nowhere 2>&1 || echo "status $?"
