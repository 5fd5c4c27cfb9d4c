package faults;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Iterator;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * Where a test wants a driver to stand still, so that it can be killed exactly there.
 *
 * Spark and Delta let their writers of small files be replaced by settings. These do what the usual ones do, and hang at the
 * moment that the environment names: HEADWATER_STOP_AT is "MOMENT PATTERN", HEADWATER_STOPPED a file to make when it is there.
 */
public final class Stops {
    private Stops() {}

    static boolean wanted(String moment, Path path) {
        String stop = System.getenv("HEADWATER_STOP_AT");
        if (stop == null || !stop.startsWith(moment + " ")) {
            return false;
        }
        return Pattern.compile(stop.substring(moment.length() + 1)).matcher(path.toUri().getPath()).find();
    }

    static void at(String moment, Path path) throws IOException {
        if (!wanted(moment, path)) {
            return;
        }
        java.nio.file.Path told = Paths.get(System.getenv("HEADWATER_STOPPED"));
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
            if (wanted("torn", path)) {
                RandomAccessFile file = new RandomAccessFile(path.toUri().getPath(), "rw");
                file.setLength(file.length() / 2L);
                file.close();
                at("torn", path);
            }
            at("written", path);
        }

        public void cancel() {
            inner.cancel();
        }
    }
}
