package faults;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Iterator;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * Where a test wants a driver to stand still, so that it can be killed exactly there.
 *
 * Spark and Delta let their writers of small files be replaced by settings. These do what the usual ones do, and hang at the
 * moments that the file "stops" tells, one "MOMENT PATTERN" a line, in the folder that HEADWATER_STOPS names. Who stands still
 * makes a file there whose name is the number of the line. The file is read anew each time: a driver may be told late.
 */
public final class Stops {
    private Stops() {}

    /** The file to make where somebody wants a stop here, else null. */
    static java.nio.file.Path wanted(String moment, Path path) throws IOException {
        String folder = System.getenv("HEADWATER_STOPS");
        if (folder == null || !Files.exists(Paths.get(folder, "stops"))) {
            return null;
        }
        String[] stops = new String(Files.readAllBytes(Paths.get(folder, "stops"))).split("\n");
        for (int number = 0; number < stops.length; number++) {
            if (stops[number].startsWith(moment + " ")) {
                String pattern = stops[number].substring(moment.length() + 1);
                if (Pattern.compile(pattern).matcher(path.toUri().getPath()).find()) {
                    return Paths.get(folder, String.valueOf(number));
                }
            }
        }
        return null;
    }

    static void at(String moment, Path path) throws IOException {
        java.nio.file.Path told = wanted(moment, path);
        if (told == null) {
            return;
        }
        if (!Files.exists(told)) {
            Files.write(told, path.toString().getBytes());
        }
        while (true) {
            try {
                Thread.sleep(1000L);
            } catch (InterruptedException stopped) {
                // So that a JVM whose Python was killed can end.
                throw new InterruptedIOException(moment);
            }
        }
    }

    /** Delta's log. */
    public static class Log extends io.delta.storage.HDFSLogStore {
        public Log(Configuration configuration) {
            super(configuration);
        }

        public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
            at("writing", path);
            super.write(path, actions, overwrite, configuration);
            at("written", path);
        }
    }

    /** The files of a checkpoint. */
    public static class Checkpoints extends FileContextBasedCheckpointFileManager {
        public Checkpoints(Path path, Configuration configuration) {
            super(path, configuration);
        }

        public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
            return new Atomic(super.createAtomic(path, overwrite), path);
        }
    }

    /** Delta's log on S3. */
    public static class StoredLog extends headwater.store.ConditionalPutLogStore {
        public StoredLog(Configuration configuration) {
            super(configuration);
        }

        public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
            at("writing", path);
            super.write(path, actions, overwrite, configuration);
            at("written", path);
        }
    }

    /** The files of a checkpoint on S3. */
    public static class StoredCheckpoints extends headwater.store.ConditionalPutCheckpointFileManager {
        private final FileSystem store;

        public StoredCheckpoints(Path path, Configuration configuration) throws IOException {
            super(path, configuration);
            this.store = path.getFileSystem(configuration);
        }

        public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
            return new StoredAtomic(super.createAtomic(path, overwrite), path, this.store);
        }
    }

    /** An object that appears when it is closed; half of it, where a store that is no better than a disk is asked for. */
    public static class StoredAtomic extends Atomic {
        private final FileSystem store;

        public StoredAtomic(CheckpointFileManager.CancellableFSDataOutputStream inner, Path path, FileSystem store) {
            super(inner, path);
            this.store = store;
        }

        void tear(Path path) throws IOException {
            byte[] half = new byte[(int) (this.store.getFileStatus(path).getLen() / 2L)];
            FSDataInputStream whole = this.store.open(path);
            whole.readFully(0L, half);
            whole.close();
            FSDataOutputStream torn = this.store.create(path, true);
            torn.write(half);
            torn.close();
        }
    }

    /** A file that gets its name when it is closed. */
    public static class Atomic extends CheckpointFileManager.CancellableFSDataOutputStream {
        private final CheckpointFileManager.CancellableFSDataOutputStream inner;
        private final Path path;

        public Atomic(CheckpointFileManager.CancellableFSDataOutputStream inner, Path path) {
            super(inner);
            this.inner = inner;
            this.path = path;
        }

        public void close() throws IOException {
            at("writing", path);
            inner.close();
            if (wanted("torn", path) != null) {
                tear(path);
                at("torn", path);
            }
            at("written", path);
        }

        /** Leave half of the file. */
        void tear(Path path) throws IOException {
            RandomAccessFile file = new RandomAccessFile(path.toUri().getPath(), "rw");
            file.setLength(file.length() / 2L);
            file.close();
        }

        public void cancel() {
            inner.cancel();
        }
    }
}
