package headwater.files;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.LinkOption;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Files of this machine, by Java's own calls. Hadoop without its native library starts a process (chmod, readlink) for the
 * permissions of each file and for each look whether something is a link. All else is Hadoop's, its checksums included.
 */
public class LocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        Files.setAttribute(this.pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()), new LinkOption[0]);
    }

    public FileStatus getFileLinkStatus(Path path) throws IOException {
        boolean isLink = Files.isSymbolicLink(this.pathToFile(path).toPath());
        return isLink ? super.getFileLinkStatus(path) : this.getFileStatus(path);
    }

    /** For fs.file.impl: what tables and sources are read and written with. */
    public static class Checked extends LocalFileSystem {
        public Checked() {
            super(new LocalFiles());
        }
    }

    /** For fs.AbstractFileSystem.file.impl: what checkpoints and Delta's log are written with. */
    public static class Context extends ChecksumFs {
        public Context(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(new Plain(uri, conf));
        }
    }

    /** What the one above adds checksums to; as Hadoop's RawLocalFs, which can't be given another file system. */
    public static class Plain extends DelegateToFileSystem {
        Plain(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(uri, new LocalFiles(), conf, "file", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public FsServerDefaults getServerDefaults() throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        public boolean isValidName(String name) {
            return true;
        }
    }
}
