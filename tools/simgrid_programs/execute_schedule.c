/* Executes the steps of a schedule with MPI: SMPI simulates it.
 *
 * Usage: execute_schedule FILE. Line r of the file has the ops of rank r: "s 3 1024" sends 1024 bytes to rank 3,
 * "r 2 1024" receives from rank 2. Rank 0 prints the time at which the last rank has finished.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE* file = fopen(argv[1], "r");
    if (file == NULL) return 1;
    for (int line = 0; line < rank; ++line)
        for (int letter = fgetc(file); letter != '\n' && letter != EOF; letter = fgetc(file)) {
        }
    const int most = 1 << 27;
    char* buffer = SMPI_SHARED_MALLOC(most);
    MPI_Request* requests = malloc(sizeof(MPI_Request) * 100000);
    int sent = 0;
    for (;;) {
        int letter = fgetc(file), peer, bytes;
        if (letter == '\n' || letter == EOF) break;
        if (letter == ' ') continue;
        if (fscanf(file, "%d %d", &peer, &bytes) != 2 || bytes > most) return 1;
        if (letter == 's')
            MPI_Isend(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[sent++]);
        else
            MPI_Recv(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    /* The time at which a rank has its result: it does not wait for its last messages to leave. */
    double finished = MPI_Wtime(), last;
    MPI_Waitall(sent, requests, MPI_STATUSES_IGNORE);
    MPI_Reduce(&finished, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.12f\n", last);
    fclose(file);
    SMPI_SHARED_FREE(buffer);
    MPI_Finalize();
    return 0;
}
